import { existsSync, readFileSync } from 'node:fs';
import { type Config, configFrom } from './config.ts';
import { problemLine } from './problem.ts';
import type { Environment, Unset } from './table.ts';

/** The file that is used when `--config` is not given and it exists. */
export const CONFIG_FILE = 'sluice.toml';

export type Loaded =
  | { readonly kind: 'loaded'; readonly config: Config; readonly source: string }
  /** `lines` are whole sentences for the operator. */
  | { readonly kind: 'unusable'; readonly lines: readonly string[] };

/** Reads and checks the config: `path` when given, else `sluice.toml` when there is one, else the embedded default. */
export function loadConfig(path: string | undefined, env: Environment, unset: Unset = 'is-wrong'): Loaded {
  const file = path ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : undefined);
  if (file === undefined) return checked({}, 'the embedded default', env, unset);
  const document = parsed(file);
  return document.kind === 'unusable' ? document : checked(document.value, file, env, unset);
}

function parsed(file: string): { kind: 'parsed'; value: unknown } | Extract<Loaded, { kind: 'unusable' }> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return { kind: 'unusable', lines: [`The config file ${file} cannot be read (${code}).`] };
  }
  try {
    return { kind: 'parsed', value: Bun.TOML.parse(text) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    // A text without quotes is shown in quotes, and may be a secret.
    const safe = reason.replaceAll(/: ".*"/gs, '');
    return { kind: 'unusable', lines: [`The config file ${file} is not valid TOML: ${safe}`] };
  }
}

function checked(document: unknown, source: string, env: Environment, unset: Unset): Loaded {
  const result = configFrom(document, env, unset);
  if (result.kind === 'config') return { kind: 'loaded', config: result.config, source };
  return { kind: 'unusable', lines: result.problems.map((problem) => `${source}: ${problemLine(problem)}`) };
}
