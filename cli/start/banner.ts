import type { ShownLink } from '../../deploys/auth/sign-up.ts';
import { unreachable } from '../../shared/brand.ts';

/** What `start` tells its user. `demoKey` is absent when the backends are the operator's own. */
export type Running = Readonly<{
  gatewayUrl: string;
  consoleUrl: string;
  demoKey: string | undefined;
  login: LoginShown;
  dataDir: string;
}>;

/** How one gets into the console. */
export type LoginShown =
  | { readonly kind: 'login'; readonly url: string }
  /** There is no operator yet: the link makes one, once, within 24 hours. */
  | { readonly kind: 'first-operator'; readonly link: ShownLink }
  /** `sentence` says what to do so that there is one. */
  | { readonly kind: 'off'; readonly sentence: string };

const GET_SLOT = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}';

/** The first screen: addresses, the demo key, and lines that work when they are pasted. */
export function bannerOf({ gatewayUrl, consoleUrl, demoKey, login, dataDir }: Running): string {
  const gateway = reachable(gatewayUrl);
  const console = reachable(consoleUrl);
  const how =
    demoKey === undefined
      ? [
          '  Make a key     bun run sluice account create NAME --plan trial',
          '                 bun run sluice key create NAME',
        ]
      : [
          `  Demo key       ${demoKey}`,
          '',
          '  Try            one call, and the latest deploys of the watched programs:',
          '',
          getSlotLine(gateway, demoKey),
          programsLine(console, demoKey),
        ];
  return [
    '',
    `  Gateway        ${gateway}`,
    `  Console        ${console}  (program API and OpenAPI)`,
    ...loginLines(login),
    ...how,
    '',
    `  Logs are in ${dataDir}; Ctrl-C stops everything.`,
    '',
    '',
  ].join('\n');
}

/** The same as one object, for `--json`. */
export function recordOf({ gatewayUrl, consoleUrl, demoKey, login }: Running): object {
  const urls = { gateway: reachable(gatewayUrl), console: reachable(consoleUrl), ...loginRecord(login) };
  if (demoKey === undefined) return urls;
  const lines = [getSlotLine(urls.gateway, demoKey), programsLine(urls.console, demoKey)];
  return { ...urls, demo_key: demoKey, try: lines };
}

function loginLines(login: LoginShown): string[] {
  switch (login.kind) {
    case 'login':
      return [`  Login          ${login.url}`];
    case 'first-operator':
      return [
        `  Login          ${login.link.kind === 'file' ? 'the link in this file' : 'this link'} makes the first operator, once, within 24 hours:`,
        '',
        login.link.kind === 'file' ? login.link.path : login.link.url,
        '',
      ];
    case 'off':
      return [`  Login          ${login.sentence}`];
    default:
      return unreachable(login);
  }
}

function loginRecord(login: LoginShown): object {
  if (login.kind === 'off') return {};
  if (login.kind === 'login') return { login: login.url };
  const { link } = login;
  return link.kind === 'file' ? { first_operator_file: link.path } : { first_operator: link.url };
}

function getSlotLine(gateway: string, key: string): string {
  return `curl -s '${gateway}?api-key=${key}' -H 'content-type: application/json' -d '${GET_SLOT}'`;
}

function programsLine(console: string, key: string): string {
  return `curl -s '${console}api/v1/program-deploys/programs?api-key=${key}'`;
}

/** An address that a client on this machine can use; a listener on every address is reached at the loopback one. */
function reachable(text: string): string {
  const url = new URL(text);
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url.hostname === '[::]') url.hostname = '[::1]';
  return url.href;
}
