import { startDas } from '../fakes/das.ts';
import { startStack } from '../started/stack.ts';

/** A busy machine makes calls and probes late; no backend lags behind the others, which are the same chain. */
const PATIENT =
  'probe_seconds = 60\nmax_lag_slots = 10_000\n[deadlines]\nlight = 60\nhistory = 60\nsend = 60\n';

/**
 * A started gateway in front of tiers: a real localnet as the nodes for state and scans, for history and for sends,
 * and a DAS server for assets. `extra` is more of the gateway's TOML. The usual slots are quick enough to wait for.
 */
export async function startTiers(extra = '', slotMs = 50) {
  const das = startDas();
  const backend = (name: string, url: string, lines: string) =>
    `[[backends]]\nname = "${name}"\nurl = "${url}"\n${lines}\n`;
  const stack = await startStack({
    slotMs,
    gatewayLines: (chain) =>
      PATIENT +
      backend('node', chain, 'lanes = ["state", "scan"]') +
      backend('archive', chain, 'lanes = ["archive"]') +
      backend('sender', chain, 'lanes = ["send"]\nmethods = ["requestAirdrop"]') +
      backend('das', das.url, 'profile = "das"') +
      extra,
  });
  const url = stack.url.href;
  const key = (plan = 'scale', credits = 0) => stack.key(plan, credits);
  return {
    url,
    key,
    /** The endpoint with a key of a new account in it, as SDKs take it. */
    endpoint: (plan?: string, credits?: number) => `${url}?api-key=${key(plan, credits)}`,
    async [Symbol.asyncDispose]() {
      await stack[Symbol.asyncDispose]();
      await das[Symbol.asyncDispose]();
    },
  };
}
