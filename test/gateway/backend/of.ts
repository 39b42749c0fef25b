import { Backend } from '../../../gateway/backend/backend.ts';
import { createHttpClient } from '../../../gateway/http/client.ts';
import type { Method } from '../../../gateway/route/methods.ts';
import { METHODS } from '../../../gateway/route/methods.ts';
import type { Route } from '../../../gateway/route/router.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import type { BackendConfig } from '../../../shared/config/backends.ts';
import { LANES_BY_DEFAULT } from '../../../shared/config/profiles.ts';

/** A backend with the config's defaults and the given rows over them. */
export function backendOf(rows: Partial<BackendConfig> & { at?: string; clock?: Clock } = {}): Backend {
  const { at = 'http://127.0.0.1:1/', clock = systemClock, ...rest } = rows;
  const config: BackendConfig = {
    name: 'a',
    url: new URL(at),
    profile: 'agave',
    lanes: LANES_BY_DEFAULT,
    methods: [],
    headers: new Map(),
    bodyBytesMax: undefined,
    connectionsMax: 512,
    trustsEnd: undefined,
    ...rest,
  };
  const headers = new Map([...config.headers].map(([name, value]) => [name, value.reveal()]));
  return new Backend(config, createHttpClient({ url: config.url, headers, clock, idleMs: 60_000 }));
}

/** The route of a known method to the given backends. */
export function routeTo(backends: readonly Backend[], name = 'getSlot'): Extract<Route, { kind: 'forward' }> {
  const method: Method | undefined = METHODS.get(name);
  if (method === undefined) throw new Error(`no method ${name}`);
  return { kind: 'forward', name, method, backends };
}
