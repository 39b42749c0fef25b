/** @jsxImportSource preact */
import type { KeyRow } from '../../../accounts/key-row.ts';
import {
  ConfirmForm,
  FORM_ID_FIELD,
  type FormErrors,
  Hidden,
  PostForm,
  RadioFields,
  Submit,
  TextField,
} from '../../components/forms.tsx';
import { Panel } from '../../components/panels.tsx';

const HOUR_MS = 3_600_000;

/** How long an old key may go on working, in milliseconds. */
export const GRACES = { '0': 0, '1h': HOUR_MS, '24h': 24 * HOUR_MS, '7d': 168 * HOUR_MS } as const;

const GRACE_OPTIONS = [
  { value: '0', label: 'At once', hint: 'After a leak.' },
  { value: '1h', label: 'In 1 hour' },
  { value: '24h', label: 'In 24 hours' },
  { value: '7d', label: 'In 7 days' },
];

type Props = Readonly<{ path: string; row: KeyRow; errors: FormErrors | undefined }>;

/** Another name. */
export function RenameForm({ path, row, errors }: Props) {
  return (
    <PostForm action={`${path}/rename`} errors={errors} isInline label="Rename">
      <TextField
        name="name"
        label="Name"
        value={row.name}
        isRequired
        maxLength={64}
        error={errors?.['name']}
      />
      <Submit>Rename</Submit>
    </PostForm>
  );
}

/** A new key in place of this one. */
export function RotatePanel({
  path,
  once,
  errors,
}: Readonly<{ path: string; once: string; errors: FormErrors | undefined }>) {
  return (
    <Panel title="Rotate" id="rotate">
      <p>
        Makes a new key of the same name and shows it once. This one goes on working for the time you choose.
      </p>
      <PostForm action={`${path}/rotate`} errors={errors} label="Rotate">
        <Hidden name={FORM_ID_FIELD} value={once} />
        <RadioFields name="grace" legend="The old key ends" value="24h" options={GRACE_OPTIONS} />
        <Submit kind="primary">Rotate the key</Submit>
      </PostForm>
    </Panel>
  );
}

/** The end of it. */
export function RevokePanel({ path, row, errors }: Props) {
  return (
    <Panel title="Revoke" id="revoke" isDanger>
      <ConfirmForm action={`${path}/revoke`} phrase={row.name} button="Revoke the key" errors={errors}>
        <p>
          Whoever uses it is refused within a second. A revoked key never works again; its usage stays on
          record.
        </p>
      </ConfirmForm>
    </Panel>
  );
}
