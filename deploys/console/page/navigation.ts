import type { PageAccount } from '../asked.ts';
import type { Viewer } from '../viewer.ts';
import type { IconName } from './icon.tsx';

/** One entry of the navigation. */
export type NavigationLink = Readonly<{ label: string; to: string; icon: IconName }>;
/** Entries under one heading. */
export type NavigationGroup = Readonly<{ title: string; links: readonly NavigationLink[] }>;

const ACCOUNT_PAGES = [
  ['Overview', 'overview', 'gauge'],
  ['Usage', 'usage', 'bars'],
  ['Keys', 'keys', 'key'],
  ['Programs', 'programs', 'cube'],
  ['Webhooks', 'webhooks', 'hook'],
  ['Deliveries', 'deliveries', 'send'],
  ['Quick start', 'quick-start', 'code'],
] as const satisfies readonly (readonly [string, string, IconName])[];

const OPERATOR_PAGES = [
  ['Accounts', 'accounts', 'people'],
  ['Backends', 'backends', 'server'],
  ['Traffic', 'traffic', 'bars'],
  ['Queue', 'queue', 'send'],
  ['Audit', 'audit', 'list'],
  ['Health', 'health', 'pulse'],
] as const satisfies readonly (readonly [string, string, IconName])[];

/** Where a viewer can go: an operator the service and the account that is looked at, a customer the own account. */
export function navigationOf(viewer: Viewer, account: PageAccount | undefined): readonly NavigationGroup[] {
  const accountId = account?.id ?? (viewer.role === 'customer' ? viewer.accountId : undefined);
  const ofAccount =
    accountId === undefined
      ? []
      : [{ title: account?.name ?? 'Account', links: linksOf(`/accounts/${accountId}`, ACCOUNT_PAGES) }];
  const ofService =
    viewer.role === 'operator' ? [{ title: 'Service', links: linksOf('/operator', OPERATOR_PAGES) }] : [];
  return [...ofService, ...ofAccount];
}

/** Where a viewer begins. */
export function startPathOf(viewer: Viewer): string {
  if (viewer.role === 'operator') return '/operator/accounts';
  return viewer.accountId === undefined ? '/settings' : `/accounts/${viewer.accountId}/overview`;
}

/** Whether an entry is the page at `path` or one below it. */
export function isWithin(path: string, { to }: NavigationLink): boolean {
  return path === to || path.startsWith(`${to}/`);
}

function linksOf(base: string, pages: readonly (readonly [string, string, IconName])[]): NavigationLink[] {
  return pages.map(([label, page, icon]) => ({ label, to: `${base}/${page}`, icon }));
}
