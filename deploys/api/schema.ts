import { type Static, t } from 'elysia';
import { WEBHOOK_SCHEMAS } from './webhooks/schema.ts';

const Nullable = <T extends Parameters<typeof t.Union>[0][number]>(schema: T, description: string) =>
  t.Union([schema, t.Null()], { description });

/** Elysia's own `t.Integer` also takes text, which no answer has, and says so in the OpenAPI document. */
const Integer = t.Unsafe<number>({ ...t.Number({ multipleOf: 1 }), type: 'integer' });

/** One watched program on the wire (spec 2.1). */
export const ProgramRecord = t.Object(
  {
    program_id: t.String({ description: 'Program address (base58)' }),
    label: t.String({ description: 'Program name' }),
    status: t.Union(
      [t.Literal('upgradeable'), t.Literal('frozen'), t.Literal('other_loader'), t.Literal('missing')],
      {
        description:
          '`upgradeable`: has an upgrade authority and can be redeployed. `frozen`: upgrade authority removed; can never ' +
          'change again. `other_loader`: deployed with a loader that does not support upgrades. `missing`: the program ' +
          'or its ProgramData account no longer exists.',
      },
    ),
    upgrade_authority: Nullable(
      t.String(),
      'Address allowed to upgrade the program; null when there is none',
    ),
    deploy_slot: Nullable(Integer, 'Slot of the last deploy; null when the program has none'),
    deployed_at: Nullable(
      t.String({ format: 'date-time' }),
      'Block time of `deploy_slot`; null until it has been looked up',
    ),
  },
  { additionalProperties: false },
);
export type ProgramRecord = Static<typeof ProgramRecord>;

/** The answer of the programs endpoint (spec 2.2). */
export const ProgramsAnswer = t.Object(
  {
    checked_at: t.String({
      format: 'date-time',
      description: 'When the programs were last read from the chain (UTC, milliseconds)',
    }),
    programs: t.Array(ProgramRecord, { description: 'Ordered by `deploy_slot`, newest first' }),
  },
  { additionalProperties: false },
);
export type ProgramsAnswer = Static<typeof ProgramsAnswer>;

/** Every error of the program API. */
export const ErrorAnswer = t.Object({ error: t.String() }, { additionalProperties: false });

/** The schemas by their names in the OpenAPI document. */
export const SCHEMAS = { ProgramRecord, ProgramsAnswer, ErrorAnswer, ...WEBHOOK_SCHEMAS };
export type SchemaName = keyof typeof SCHEMAS;

/** The header of every 401 in the OpenAPI document. */
export const WWW_AUTHENTICATE = {
  'WWW-Authenticate': {
    description: '`Bearer`, to a wrong key with `error="invalid_token"` and `error_description` (RFC 6750)',
    schema: { type: 'string' as const },
  },
};

/** A reference to one of `SCHEMAS` in the OpenAPI document. */
export function refOf(name: SchemaName): { $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}
