/** @jsxImportSource preact */
import { render } from 'preact-render-to-string';
import type { Viewer } from '../auth/auth-service.ts';
import type { AssetPaths } from './assets/assets.ts';
import { Here } from './components/here.ts';
import { Crumbs, Link, withQuery } from './components/links.tsx';
import { Empty, Icon, type IconName, Notice } from './components/panels.tsx';
import type { Content, PageAccount, PageContext, PageRoute } from './page.ts';
import { ACCOUNT, flashOf, paths } from './paths.ts';

/** How the viewer wants the console to look; `undefined`: as the system does. */
type Theme = 'light' | 'dark' | undefined;

/** The choice in a request's cookies; anything unknown is no choice. */
export function themeOf(request: Request): Theme {
  const cookies = request.headers.get('cookie') ?? '';
  const value = /(?:^|;\s*)theme=([a-z]+)/.exec(cookies)?.[1];
  return value === 'light' || value === 'dark' ? value : undefined;
}

type NavigationLink = readonly [label: string, to: string, icon: IconName];

/** The pages of a viewer: for operators the service and the account on display, for customers their own account. */
function navigationOf(pages: readonly PageRoute<never>[], viewer: Viewer, account: PageAccount | undefined) {
  const id = account?.id ?? (viewer.role === 'customer' ? viewer.accountId : undefined);
  const linksFor = (wanted: PageRoute<never>['audience']) =>
    pages.flatMap(({ audience, entry, path }): readonly NavigationLink[] =>
      entry && audience === wanted ? [[entry[0], path.replace(ACCOUNT, String(id)), entry[1]]] : [],
    );
  return [
    { title: 'Service', links: viewer.role === 'operator' ? linksFor('operator') : [] },
    { title: account?.name ?? 'Account', links: id === undefined ? [] : linksFor('account') },
  ].filter(({ links }) => links.length > 0);
}

/** The console's navigation: a column at the side, a strip on phones. An entry is current on the pages below it too. */
function navigationBar(groups: ReturnType<typeof navigationOf>, path: string) {
  return (
    <nav class="navigation" aria-label="Main">
      {groups.map(({ title, links }) => (
        <section class="navigation-group">
          <h2 class="navigation-title">{title}</h2>
          <ul>
            {links.map(([label, to, icon]) => (
              <li>
                <Link to={to} isCurrent={path === to || path.startsWith(`${to}/`)}>
                  <Icon name={icon} />
                  {label}
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

const MARK = 'M4 11h13a4 4 0 0 0 0-8M4 16h18a4.5 4.5 0 0 1 0 9M4 21h10a4 4 0 0 1 0 8';

/** The bar above every page: brand, theme, settings, sign-out. */
function topBar(viewer: Viewer | undefined, theme: Theme, here: string) {
  return (
    <header class="top-bar">
      <Link to={paths.start} class="brand">
        <svg
          class="brand-mark"
          viewBox="0 0 32 32"
          width="22"
          height="22"
          aria-hidden="true"
          focusable="false"
        >
          <path d={MARK} fill="none" stroke="currentColor" stroke-width="3" stroke-linecap="round" />
        </svg>
        Sluice
      </Link>
      <div class="top-bar-end">
        {themeForm(theme, here)}
        {viewer && (
          <>
            <Link to={paths.settings} class="top-bar-link" label={`Settings for ${viewer.email}`}>
              <Icon name="sliders" />
              <span class="viewer-email fold">{viewer.email}</span>
            </Link>
            <form method="post" action={paths.logout}>
              <button type="submit" class="quiet">
                <Icon name="out" />
                <span class="fold">Sign out</span>
              </button>
            </form>
          </>
        )}
      </div>
    </header>
  );
}

/** Three choices, because "as the system does" must be there to come back to. */
function themeForm(theme: Theme, here: string) {
  const choice = (value: string, label: string, icon: 'sun' | 'moon' | 'gauge') => (
    <button
      type="submit"
      name="theme"
      value={value}
      class="theme-choice"
      aria-pressed={(theme ?? 'system') === value ? 'true' : 'false'}
      title={label}
    >
      {icon === 'gauge' ? <span aria-hidden="true">A</span> : <Icon name={icon} />}
      <span class="hidden">{label}</span>
    </button>
  );
  return (
    <form method="post" action={paths.theme} class="theme-form" aria-label="Theme">
      <input type="hidden" name="next" value={here} />
      {choice('system', 'System theme', 'gauge')}
      {choice('light', 'Light theme', 'sun')}
      {choice('dark', 'Dark theme', 'moon')}
    </form>
  );
}

/** htmx evaluates no text, requests no other origin, adds no styles, and stores no page in the browser. */
const HTMX_CONFIG = JSON.stringify({
  allowEval: false,
  allowScriptTags: false,
  selfRequestsOnly: true,
  includeIndicatorStyles: false,
  historyEnabled: false,
  historyCacheSize: 0,
});

function documentOf(content: Content, at: At, assets: AssetPaths, pages: readonly PageRoute<never>[]) {
  const { title, body, aside, returned, crumbs = [] } = content;
  const { request, url, viewer, account, nowMs } = at;
  const theme = themeOf(request);
  const flash = flashOf(url.searchParams.get('done'));
  return (
    <html lang="en" data-theme={theme}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content={theme ?? 'light dark'} />
        <meta name="robots" content="noindex" />
        <meta name="htmx-config" content={HTMX_CONFIG} />
        <title>{`${title} · ${account ? `${account.name} · ` : ''}Sluice`}</title>
        <link rel="icon" type="image/svg+xml" href={assets.icon} />
        <link rel="stylesheet" href={assets.style} />
        <script src={assets.htmx} defer />
        <script type="module" src={assets.script} data-plot={assets.plot} id="console-script" />
      </head>
      <body class={viewer ? 'signed-in' : 'signed-out'}>
        <a href="#content" class="skip-link">
          Skip to content
        </a>
        {topBar(viewer, theme, withQuery(url, {}))}
        {viewer && navigationBar(navigationOf(pages, viewer, account), url.pathname)}
        <main id="content" tabindex={-1}>
          {crumbs.length > 0 && <Crumbs crumbs={crumbs} here={title} />}
          <div class="page-head">
            <h1>{title}</h1>
            {aside && <div class="page-aside">{aside}</div>}
          </div>
          <div id="flash" role="status">
            {flash && <Notice tone="good">{flash}</Notice>}
          </div>
          <Here.Provider value={{ url, nowMs, returned }}>{body}</Here.Provider>
        </main>
        <dialog id="drawer" aria-label="Details">
          <form method="dialog" class="drawer-close">
            <button type="submit" class="quiet">
              Close
            </button>
          </form>
          <div id="drawer-body" />
        </dialog>
      </body>
    </html>
  );
}

/** The parts of a request that the document shows beside the page. */
type At = Pick<PageContext, 'request' | 'url' | 'viewer' | 'account' | 'nowMs'>;

/** Renders content into the one document, as a response with its headers. */
export function createShow(assets: AssetPaths, pages: readonly PageRoute<never>[]) {
  return function show(content: Content, at: At): Response {
    const html = render(documentOf(content, at, assets, pages));
    const headers = new Headers({ 'content-type': 'text/html; charset=utf-8' });
    const { status = 200, retryAfterSeconds } = content;
    if (retryAfterSeconds !== undefined) headers.set('retry-after', String(retryAfterSeconds));
    return new Response(`<!doctype html>${html}`, { status, headers });
  };
}

/** Why the console itself rejects a request. None reveals more than the viewer may know. */
export type RouteRefusal =
  | { readonly kind: 'not-found' | 'other-origin' | 'no-form' | 'too-slow' | 'broken' }
  | { readonly kind: 'wrong-method'; readonly allow: string }
  | { readonly kind: 'read-only'; readonly text: string }
  /** Too many changes by one user. */
  | { readonly kind: 'too-many'; readonly retryAfterSeconds: number };

const TEXTS: Readonly<Record<RouteRefusal['kind'], readonly [status: number, title: string, text: string]>> =
  {
    'not-found': [404, 'Not found', 'Page not found, or no access.'],
    'wrong-method': [405, 'Method not allowed', 'This address does not support this method.'],
    'other-origin': [
      403,
      'Rejected',
      'This form did not come from the console. Nothing was changed. Open the page again and resubmit it.',
    ],
    'no-form': [415, 'Rejected', 'This address accepts only forms. Nothing was changed.'],
    'too-slow': [
      408,
      'Request timeout',
      'The form took too long to arrive. Nothing was changed. Please try again.',
    ],
    'too-many': [
      429,
      'Too many changes',
      'Too many changes in a short time. Nothing was changed. Try again in',
    ],
    'read-only': [503, 'No changes now', ''],
    broken: [
      500,
      'Something went wrong',
      'An internal error occurred. The service log has the details. Try again in a moment.',
    ],
  };

/** A refusal as a page. */
export function refusalContent(refusal: RouteRefusal): Content {
  const [status, title, text] = TEXTS[refusal.kind];
  const retryAfterSeconds = refusal.kind === 'too-many' ? refusal.retryAfterSeconds : undefined;
  const shown = refusal.kind === 'read-only' ? refusal.text : text;
  return {
    title,
    status,
    retryAfterSeconds,
    body: (
      <Empty title={retryAfterSeconds === undefined ? shown : `${text} ${retryAfterSeconds} s.`}>
        <Link to={paths.start}>Back to home</Link>
      </Empty>
    ),
  };
}
