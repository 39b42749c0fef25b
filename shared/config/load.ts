import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { fileReason } from '../store/private.ts';
import { type Config, configFrom, type GatewayConfig } from './config.ts';
import { type Environment, problemLine, type Unset } from './table.ts';

/** The file that is used when `--config` is not given and it exists. */
const CONFIG_FILE = 'sluice.toml';

/** A config that is in order, and the text that it is of. */
export type LoadedConfig = Readonly<{ kind: 'loaded'; config: Config; read: ConfigText }>;

/** `lines` are whole sentences for the operator. */
type Unusable = Readonly<{ kind: 'unusable'; lines: readonly string[] }>;
export type Loaded = LoadedConfig | Unusable;

/** A config as it was read: the text of the file of that name; without a text, the embedded default. */
export type ConfigText = Readonly<{ name: string; text?: string | undefined }>;

/** Reads and checks the config: `path` when given, else `sluice.toml` when there is one, else the embedded default. */
export function loadConfig(path: string | undefined, env: Environment, unset: Unset = 'is-wrong'): Loaded {
  const reading = readConfig(path);
  return reading.kind === 'unusable' ? reading : parseConfig(reading.read, env, unset);
}

export function readConfig(
  path: string | undefined,
): { readonly kind: 'read'; readonly read: ConfigText } | Unusable {
  const name = path ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : undefined);
  if (name === undefined) return { kind: 'read', read: { name: 'the embedded default' } };
  try {
    return { kind: 'read', read: { name, text: readFileSync(name, 'utf8') } };
  } catch (error) {
    return { kind: 'unusable', lines: [`The config file ${name} cannot be read (${fileReason(error)}).`] };
  }
}

/** Why a file is none to reload: it says nothing, as one does that is just being written. */
export function blankComplaint({ name, text }: ConfigText): string | undefined {
  const isBlank = text?.split('\n').every((line) => /^\s*(?:#|$)/.test(line)) ?? false;
  return isBlank ? `The config file ${name} is empty.` : undefined;
}

export function parseConfig(read: ConfigText, env: Environment, unset: Unset = 'is-wrong'): Loaded {
  const { name, text = '' } = read;
  let document: unknown;
  try {
    document = Bun.TOML.parse(text);
  } catch (error) {
    // A text without quotes is shown in quotes, and may be a secret.
    const reason = error instanceof Error ? error.message : String(error);
    const safe = reason.replaceAll(/: ".*"/gs, '');
    return { kind: 'unusable', lines: [`The config file ${name} is not valid TOML: ${safe}`] };
  }
  const result = configFrom(document, env, unset);
  if (result.kind === 'config') return { kind: 'loaded', config: result.config, read };
  return { kind: 'unusable', lines: result.problems.map((problem) => `${name}: ${problemLine(problem)}`) };
}

/** A sentence when a file of the TLS settings cannot be read. */
export function unreadableTls(tls: GatewayConfig['tls']): string | undefined {
  for (const path of tls === undefined ? [] : [tls.certPath, tls.keyPath]) {
    try {
      accessSync(path, constants.R_OK);
    } catch (error) {
      return `The file ${path} of gateway.tls cannot be read (${fileReason(error)}).`;
    }
  }
  return undefined;
}
