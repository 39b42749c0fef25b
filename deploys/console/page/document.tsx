/** @jsxImportSource preact */
import type { Content, PageAccount } from '../asked.ts';
import type { AssetPaths } from '../assets/assets.ts';
import type { Viewer } from '../viewer.ts';
import { Crumbs } from './crumbs.tsx';
import { NavigationBar } from './navigation-bar.tsx';
import { Notice } from './notice.tsx';
import type { Theme } from './theme.ts';
import { TopBar } from './top-bar.tsx';

type DocumentProps = Readonly<{
  content: Content;
  viewer: Viewer | undefined;
  account: PageAccount | undefined;
  /** The page's path, and the same with its query. */
  path: string;
  here: string;
  theme: Theme;
  /** What has just been done, shown once. */
  flash: string | undefined;
  assets: AssetPaths;
}>;

/** htmx neither evaluates text nor asks other origins, adds no style of its own, and keeps no page in the browser's storage. */
const HTMX_CONFIG = JSON.stringify({
  allowEval: false,
  allowScriptTags: false,
  selfRequestsOnly: true,
  includeIndicatorStyles: false,
  historyEnabled: false,
  historyCacheSize: 0,
});

/** The whole HTML document around a page's content. */
export function Document(props: DocumentProps) {
  const { content, viewer, account, path, here, theme, flash, assets } = props;
  const { title, body, aside, crumbs = [] } = content;
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
          Skip to the content
        </a>
        <TopBar viewer={viewer} theme={theme} here={here} />
        {viewer && <NavigationBar viewer={viewer} account={account} path={path} />}
        <main id="content" tabindex={-1}>
          {crumbs.length > 0 && <Crumbs crumbs={crumbs} here={title} />}
          <div class="page-head">
            <h1>{title}</h1>
            {aside && <div class="page-aside">{aside}</div>}
          </div>
          <div id="flash" role="status">
            {flash && <Notice tone="good">{flash}</Notice>}
          </div>
          {body}
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
