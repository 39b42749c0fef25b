import { isAddress } from '@solana/kit';
import {
  literalOf,
  type NetworkPolicy,
  readWebhookUrl,
  URL_PROBLEM_TEXTS,
  type ResolvePublic,
} from '../delivery/policy.ts';
import { SEND_TEXTS } from '../outbox/outcome.ts';

/** `programs` is null for all watched programs. */
export type Settings = Readonly<{ url: string; programs: readonly string[] | null; description: string }>;

/** Valid settings: the URL parsed, every program once. What was not given is absent. */
export type Checked = Partial<Omit<Settings, 'url'>> & Readonly<{ url?: URL }>;

export type Check =
  | Readonly<{ kind: 'checked'; checked: Checked }>
  | Readonly<{ kind: 'unfit'; field: keyof Settings; text: string }>
  /** The URL's host cannot be resolved now. */
  | Readonly<{ kind: 'unresolved'; field: 'url'; text: string }>;

type Rejected = Exclude<Check, { kind: 'checked' }>;
export type CheckSettings = (given: Partial<Settings>, signal: AbortSignal) => Promise<Check>;

export const DESCRIPTION_CHARACTERS_MAX = 200;
const DESCRIPTION_TEXT = `The description must be one line of at most ${DESCRIPTION_CHARACTERS_MAX} characters`;

type SettingsDeps = Readonly<{
  policy: NetworkPolicy;
  resolvePublic: ResolvePublic;
  isWatched(address: string): boolean;
}>;

/** Checks the given settings; the URL last, because its host is looked up. */
export function createCheckSettings({ policy, resolvePublic, isWatched }: SettingsDeps): CheckSettings {
  async function checkUrl(text: string, signal: AbortSignal): Promise<URL | Rejected> {
    const url = readWebhookUrl(text, policy);
    if (typeof url === 'string') return unfit('url', URL_PROBLEM_TEXTS[url]);
    const resolved = await resolvePublic(literalOf(url) ?? url.hostname, signal);
    if (resolved.kind === 'public') return url;
    const reason = resolved.kind === 'no-address' ? 'Host name does not resolve' : SEND_TEXTS[resolved.code];
    return resolved.kind === 'unresolved'
      ? { kind: 'unresolved', field: 'url', text: reason }
      : unfit('url', reason);
  }

  function programsProblem(programs: readonly string[]): string | undefined {
    if (programs.length === 0) return 'Select at least one program, or null for all';
    const odd = programs.find((program) => !isAddress(program));
    if (odd !== undefined) return `Invalid program_id: ${shortened(odd)}`;
    const unwatched = programs.find((program) => !isWatched(program));
    return unwatched === undefined ? undefined : `The program is not watched: ${unwatched}`;
  }

  return async function checkSettings({ url, programs, description }, signal) {
    if (description !== undefined && !isDescription(description))
      return unfit('description', DESCRIPTION_TEXT);
    const problem = programs && programsProblem(programs);
    if (typeof problem === 'string') return unfit('programs', problem);
    const target = url === undefined ? undefined : await checkUrl(url, signal);
    if (target !== undefined && !(target instanceof URL)) return target;
    const checked = {
      ...(target && { url: target }),
      ...(programs !== undefined && { programs: programs && [...new Set(programs)] }),
      ...(description !== undefined && { description }),
    };
    return { kind: 'checked', checked };
  };
}

function unfit(field: keyof Settings, text: string): Extract<Check, { kind: 'unfit' }> {
  return { kind: 'unfit', field, text };
}

function isDescription(text: string): boolean {
  return text.length <= DESCRIPTION_CHARACTERS_MAX && !/[\p{Cc}\u2028\u2029]/u.test(text);
}

/** Longer than any address, so that what was meant can still be recognised. */
export function shortened(text: string): string {
  return text.length <= 64 ? text : `${text.slice(0, 64)}…`;
}
