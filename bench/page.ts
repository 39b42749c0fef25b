import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  outcomeRows,
  type Result,
  type Scanned,
  scanRows,
  SCANS_SHOWN,
  shown,
  timingRows,
} from './result.ts';

/** The result as one page: its charts, styles and data are in it, and its policy lets it load nothing. */
export function pageOf(result: Result): string {
  const style = `${textOf('uplot/dist/uPlot.min.css')}\n${textOf('./page/page.css')}`;
  const scripts = [textOf('uplot/dist/uPlot.iife.min.js'), textOf('./page/charts.js')];
  const policy = [
    "default-src 'none'",
    `script-src ${scripts.map(hashOf).join(' ')}`,
    `style-src ${hashOf(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  // A second that the run did not fill would look like a fall of a rate; of transfers it has the last ones.
  const whole = result.run.filter(({ second }) => second + 1 <= result.seconds + 0.05);
  const run = result.counted !== 'transfers' && whole.length > 0 ? whole : result.run;
  // In a data block nothing but `<` can end it.
  const data = JSON.stringify({
    run,
    timings: result.timings,
    counted: result.counted,
  }).replaceAll('<', '\\u003c');
  const title = `${result.command} ${result.endpoint}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escaped(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<main>
${bodyOf(result)}
</main>
<script type="application/json" id="data">${data}</script>
${scripts.map((script) => `<script>${script}</script>`).join('\n')}
</body>
</html>
`;
}

function bodyOf(result: Result): string {
  const { command, endpoint, at, seconds, stopped, machine, settings, figures, timings, notes, outcomes } =
    result;
  const settled = Object.entries(settings).map(([name, value]) => `${name} <b>${escaped(String(value))}</b>`);
  const items = (sentences: readonly string[]) =>
    sentences.map((sentence) => `<li>${escaped(sentence)}</li>`).join('');
  return [
    `<h1>${escaped(command)} <span>${escaped(endpoint)}</span></h1>`,
    `<p>${escaped(at)}, ${shown(seconds)} s${stopped ? ', stopped before its end' : ''}<br>${settled.join(', ')}<br>${escaped(machine)}</p>`,
    result.failures.length > 0 ? `<ul class="failures">${items(result.failures)}</ul>` : '',
    `<dl>${figures
      .map(
        ({ name, value, unit }) =>
          `<div><dt>${escaped(name)}</dt><dd>${shown(value)} <small>${escaped(unit)}</small></dd></div>`,
      )
      .join('')}</dl>`,
    '<section><h2>The run</h2><div id="rate" class="chart"></div><div id="latency" class="chart"></div><div id="bytes" class="chart"></div></section>',
    '<section><h2>How long answers took</h2><div id="histogram" class="chart"></div>',
    tableOf(timingRows(timings)),
    '</section>',
    scansOf(result.scans),
    Object.keys(outcomes).length === 0
      ? ''
      : `<section><h2>Outcomes</h2>${tableOf(outcomeRows(outcomes))}</section>`,
    notes.length > 0 ? `<ul>${items(notes)}</ul>` : '',
  ].join('\n');
}

function scansOf(scans: readonly Scanned[] | undefined): string {
  if (scans === undefined) return '';
  const title = scans.length > SCANS_SHOWN ? `The last ${SCANS_SHOWN} scans` : 'Scans';
  return `<section><h2>${title}</h2>${tableOf(scanRows(scans))}</section>`;
}

function tableOf([head = [], ...rows]: readonly (readonly string[])[]): string {
  const cells = (row: readonly string[], tag: string) =>
    row.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('');
  const body = rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n');
  return `<div class="wide"><table><thead><tr>${cells(head, 'th')}</tr></thead><tbody>${body}</tbody></table></div>`;
}

/** A file beside this one, or of a package. */
function textOf(path: string): string {
  const at = path.startsWith('./') ? join(import.meta.dir, path) : Bun.resolveSync(path, import.meta.dir);
  return readFileSync(at, 'utf8').trim();
}

/** The source of a policy that allows this text alone (CSP 3). */
function hashOf(text: string): string {
  return `'sha256-${new Bun.CryptoHasher('sha256').update(text).digest('base64')}'`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
