import { API_TITLE, DOCUMENT_PATH, KEY_CARRIERS, PROGRAMS_OPERATION } from './openapi.ts';
import { PROGRAMS_PATH } from './programs.ts';
import { ProgramRecord, ProgramsAnswer } from './schema.ts';
import { WEBHOOK_ROUTES, WEBHOOKS_PATH } from './webhook-routes.ts';

/** Nothing may be loaded from anywhere; the one style is in the page. */
export const REFERENCE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

/** The API's reference as one HTML page that asks no other origin for anything. */
export function referencePage(publicUrl: URL): string {
  const { parameters, responses, summary, description } = PROGRAMS_OPERATION;
  const url = `${publicUrl.href.replace(/\/$/, '')}${PROGRAMS_PATH}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(API_TITLE)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${text(API_TITLE)}</h1>
<p>For machines: <a href="${DOCUMENT_PATH}">${DOCUMENT_PATH}</a> (OpenAPI).</p>
<h2><code>GET ${text(PROGRAMS_PATH)}</code></h2>
<p>${text(summary)}. ${prose(description)}</p>
<pre>curl -H 'x-token: &lt;API_KEY&gt;' '${text(url)}'</pre>
<h3>Key</h3>
${table(
  ['Way', 'Meaning'],
  Object.values(KEY_CARRIERS).map((way) => [wayOf(way), way.description]),
)}
<h3>Query</h3>
${table(
  ['Parameter', 'Meaning'],
  parameters.map(({ name, description: meaning }) => [`\`${name}\``, `Optional. ${meaning}`]),
)}
<h3>Response</h3>
${table(['Field', 'Meaning'], fieldsOf(ProgramsAnswer.properties))}
<p>Each element of <code>programs</code>:</p>
${table(['Field', 'Meaning'], fieldsOf(ProgramRecord.properties))}
<pre>${text(JSON.stringify(responses[200].content['application/json'].example, null, 2))}</pre>
<h3>Errors</h3>
<p>The body is <code>{"error": "&lt;text&gt;"}</code>.</p>
${table(['Status', 'Text', 'When'], errorRows())}
<h2>Webhooks</h2>
<p>An account manages its webhooks with the same keys under <code>${WEBHOOKS_PATH}</code>. What can be asked there is in
the document for machines, with every body and response:</p>
<ul>
${WEBHOOK_ROUTES.map(({ operation: { operationId, summary } }) => `<li><code>${operationId}</code>: ${prose(summary)}</li>`).join('\n')}
</ul>
</body>
</html>
`;
}

function wayOf(way: (typeof KEY_CARRIERS)[keyof typeof KEY_CARRIERS]): string {
  return way.type === 'http' ? '`Authorization: Bearer`' : `${way.in} \`${way.name}\``;
}

function fieldsOf(properties: Readonly<Record<string, { description?: string }>>): string[][] {
  return Object.entries(properties).map(([name, { description }]) => [`\`${name}\``, description ?? '']);
}

function errorRows(): string[][] {
  return Object.entries(PROGRAMS_OPERATION.responses).flatMap(([status, { description, content }]) => {
    const json = content['application/json'];
    if (!('examples' in json)) return [];
    const texts = Object.values(json.examples).map(({ summary }) => `\`${summary}\``);
    return [[status, texts.join(', '), description]];
  });
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[], tag: string) =>
    `<tr>${cells.map((cell) => `<${tag}>${prose(cell)}</${tag}>`).join('')}</tr>`;
  return `<table><thead>${line(head, 'th')}</thead><tbody>${rows.map((row) => line(row, 'td')).join('\n')}</tbody></table>`;
}

/** Escaped text in which `code` is set as code. */
function prose(value: string): string {
  return text(value).replace(/`([^`]+)`/g, '<code>$1</code>');
}

function text(value: string): string {
  return Bun.escapeHTML(value);
}

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 0.875rem/1.5 ui-monospace, monospace; }
pre { padding: 0.75rem; overflow-x: auto; border: 1px solid #8886; border-radius: 4px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.375rem 0.5rem; border-bottom: 1px solid #8886; }
`;
