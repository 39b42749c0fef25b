/** @jsxImportSource preact */
import type { AskedOfAccount, Page } from '../../context.ts';
import type { PageDeps } from '../../page-services.ts';
import { CodeBlock, CopyButton } from '../../components/code.tsx';
import { Facts, Panel } from '../../components/panels.tsx';
import { Link, Tabs, withQuery } from '../../components/links.tsx';
import { KEY_PLACEHOLDER, programsSnippet, rpcSnippets, type Snippet } from './snippets.ts';

/** `/quick-start`: first calls, to be copied. */
export function createQuickStartPage({
  rpcUrl,
  origin,
}: Pick<PageDeps, 'rpcUrl' | 'origin'>): Page<AskedOfAccount> {
  const snippets = rpcSnippets(rpcUrl);
  const programs = programsSnippet(origin);

  return function quickStartPage({ account, url, show }) {
    return show({
      title: 'Quick start',
      body: (
        <>
          <p>
            Put one of your <Link to={`/accounts/${account.id}/keys`}>keys</Link> where{' '}
            <code>{KEY_PLACEHOLDER}</code> stands.
          </p>
          {account.plan === undefined ? (
            <p>This account has no RPC plan: its keys open the program API alone.</p>
          ) : (
            <>
              <Endpoint href={rpcUrl.href} />
              <FirstCall snippets={snippets} url={url} />
            </>
          )}
          <Panel title="Program API">
            <p>The latest deploy of every watched program. It costs no credits.</p>
            <CodeBlock id="programs" label="First call to the program API" text={programs.text} />
            <p>
              Every address, field and error is in the <Link to="/openapi">reference of the API</Link>.
            </p>
          </Panel>
        </>
      ),
    });
  };
}

function Endpoint({ href }: Readonly<{ href: string }>) {
  return (
    <Panel title="Endpoint">
      <Facts
        facts={[
          {
            label: 'URL',
            value: (
              <>
                <code id="endpoint">{href}</code>
                <CopyButton of="endpoint" label="Copy the endpoint" />
              </>
            ),
          },
          {
            label: 'Key',
            value: (
              <span>
                in the header <code>x-token</code>, as <code>Authorization: Bearer</code>, or in the address
                as <code>?api-key=</code>
              </span>
            ),
          },
          { label: 'WebSocket', value: 'none: ask for the status of a transaction instead' },
        ]}
      />
    </Panel>
  );
}

/** One language at a time, each with its own address. */
function FirstCall({ snippets, url }: Readonly<{ snippets: readonly Snippet[]; url: URL }>) {
  const chosen = snippets.find(({ id }) => id === url.searchParams.get('in')) ?? snippets[0];
  if (chosen === undefined) return null;
  return (
    <Panel title="First call">
      <Tabs
        label="Language"
        tabs={snippets.map(({ id, language }) => ({
          label: language,
          to: withQuery(url, { in: id }),
          isCurrent: id === chosen.id,
        }))}
      />
      {chosen.needs !== undefined && (
        <CodeBlock id="needs" label={`What ${chosen.language} needs`} text={chosen.needs} />
      )}
      <CodeBlock id="first-call" label={`First call with ${chosen.language}`} text={chosen.text} />
    </Panel>
  );
}
