/** @jsxImportSource preact */
import { PROGRAMS_PATH } from '../../../api/programs.ts';
import { CodeBlock, CopiedCode } from '../../components/code.tsx';
import { Link, Tabs, views } from '../../components/links.tsx';
import { factList, Panel } from '../../components/panels.tsx';
import { accountPage } from '../../page.ts';
import { ACCOUNT, paths } from '../../paths.ts';

export const quickStartPage = accountPage({
  path: paths.quickStart(ACCOUNT),
  entry: ['Quick start', 'code'],
  show: ({ rpcUrl, origin }, { account, url }) => ({
    title: 'Quick start',
    body: [
      <p>
        Replace <code>{KEY_PLACEHOLDER}</code> with one of your{' '}
        <Link to={paths.keys(account.id)}>API keys</Link>.
      </p>,
      account.plan === undefined ? (
        <p>This account has no RPC plan: its API keys give access to the program API only.</p>
      ) : (
        <>
          <Panel title="Endpoint">
            {factList([
              ['URL', <CopiedCode id="endpoint" text={rpcUrl.href} label="Copy endpoint URL" />],
              [
                'Key',
                <span>
                  Header <code>x-token</code>, <code>Authorization: Bearer</code>, or query parameter{' '}
                  <code>?api-key=</code>
                </span>,
              ],
              ['WebSocket', 'Not supported. Poll getSignatureStatuses'],
            ])}
          </Panel>
          {firstCallPanel(rpcSnippets(rpcUrl), url)}
        </>
      ),
      <Panel title="Program API">
        <p>The latest deploy of every watched program. Costs no credits.</p>
        <CodeBlock id="programs" label="First call to the program API" text={programsSnippet(origin)} />
        <p>
          All endpoints, fields and errors are in the <Link to="/openapi">API reference</Link>.
        </p>
      </Panel>,
    ],
  }),
});

/** One language at a time, each with its own address. */
function firstCallPanel(snippets: readonly Snippet[], url: URL) {
  const chosen = snippets.find(({ id }) => id === url.searchParams.get('in')) ?? snippets[0];
  if (chosen === undefined) return null;
  return (
    <Panel title="First call">
      <Tabs
        label="Language"
        tabs={views(
          url,
          'in',
          snippets.map(({ id, language }) => [id, language]),
          chosen.id,
        )}
      />
      {chosen.needs !== undefined && (
        <CodeBlock id="needs" label={`Install for ${chosen.language}`} text={chosen.needs} />
      )}
      <CodeBlock id="first-call" label={`First call with ${chosen.language}`} text={chosen.text} />
    </Panel>
  );
}

/** A first call in one language: `text` is whole and runs as it stands once the key is put in. */
export type Snippet = Readonly<{
  id: string;
  language: string;
  /** Its requirements, as its readers would type them; absent for what every installation has. */
  needs?: string;
  text: string;
}>;

/** Stands where the caller's key goes. No page puts a real key there. */
export const KEY_PLACEHOLDER = 'YOUR_API_KEY';

/** First calls to the RPC endpoint at this address. */
export function rpcSnippets({ href }: URL): readonly Snippet[] {
  // A string of JavaScript, Rust, Python and Go at once: an address as URL writes it has nothing but ASCII.
  const url = JSON.stringify(href);
  return [
    {
      id: 'kit',
      language: 'Kit',
      needs: 'npm install @solana/kit',
      text: `import { createDefaultRpcTransport, createSolanaRpcFromTransport } from '@solana/kit';

const transport = createDefaultRpcTransport({
  url: ${url},
  headers: { 'x-token': '${KEY_PLACEHOLDER}' },
});
const rpc = createSolanaRpcFromTransport(transport);

console.log('slot', await rpc.getSlot().send());
`,
    },
    {
      id: 'web3js',
      language: 'web3.js',
      needs: 'npm install @solana/web3.js@1',
      text: `import { Connection } from '@solana/web3.js';

const connection = new Connection(${url}, {
  commitment: 'confirmed',
  httpHeaders: { 'x-token': '${KEY_PLACEHOLDER}' },
});

console.log('slot', await connection.getSlot());
`,
    },
    {
      id: 'rust',
      language: 'Rust',
      needs: 'cargo add ureq --features json && cargo add serde_json',
      text: `use serde_json::{Value, json};

fn main() -> Result<(), ureq::Error> {
    let answer: Value = ureq::post(${url})
        .header("x-token", "${KEY_PLACEHOLDER}")
        .send_json(json!({ "jsonrpc": "2.0", "id": 1, "method": "getSlot" }))?
        .body_mut()
        .read_json()?;
    println!("slot {}", answer["result"]);
    Ok(())
}
`,
    },
    {
      id: 'python',
      language: 'Python',
      text: `import json
from urllib.request import Request, urlopen

call = {"jsonrpc": "2.0", "id": 1, "method": "getSlot"}
request = Request(
    ${url},
    data=json.dumps(call).encode(),
    headers={"content-type": "application/json", "x-token": "${KEY_PLACEHOLDER}"},
)
with urlopen(request, timeout=30) as answer:
    print("slot", json.load(answer)["result"])
`,
    },
    {
      id: 'go',
      language: 'Go',
      text: `package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"strings"
)

func main() {
	call := strings.NewReader(\`{"jsonrpc":"2.0","id":1,"method":"getSlot"}\`)
	request, err := http.NewRequest("POST", ${url}, call)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-token", "${KEY_PLACEHOLDER}")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ Result uint64 }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		log.Fatal(err)
	}
	fmt.Println("slot", answer.Result)
}
`,
    },
    {
      id: 'curl',
      language: 'curl',
      text: `curl -s ${shellQuoted(href)} \\
  -H 'content-type: application/json' \\
  -H 'x-token: ${KEY_PLACEHOLDER}' \\
  -d '{"jsonrpc":"2.0","id":1,"method":"getSlot"}'
`,
    },
  ];
}

/** The first call to the program API of the service at this origin. */
export function programsSnippet(origin: string): string {
  return `curl -s ${shellQuoted(`${origin}${PROGRAMS_PATH}`)} \\
  -H 'x-token: ${KEY_PLACEHOLDER}'
`;
}

/** URL leaves single quotes in a path as they are. */
function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
