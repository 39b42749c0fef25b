import { parseArgs } from 'node:util';

export type ConfigPath =
  | { readonly kind: 'path'; readonly path: string | undefined }
  /** `lines` are for the operator. */
  | { readonly kind: 'unusable'; readonly lines: readonly string[] };

/** The value of `--config` in an app's arguments, the only one it takes. */
export function configPathFrom(args: readonly string[], app: string): ConfigPath {
  try {
    const { values } = parseArgs({ args: [...args], options: { config: { type: 'string' } }, strict: true });
    return { kind: 'path', path: values.config };
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'The arguments cannot be read.';
    return { kind: 'unusable', lines: [reason, `Usage: bun ${app}/main.ts [--config FILE]`] };
  }
}
