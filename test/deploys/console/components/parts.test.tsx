/** @jsxImportSource preact */
import { describe, expect, test } from 'bun:test';
import { render } from 'preact-render-to-string';
import { Chart } from '../../../../deploys/console/components/charts.tsx';
import { ShortAddress } from '../../../../deploys/console/components/code.tsx';
import { Ago, Time } from '../../../../deploys/console/components/format.tsx';
import { ConfirmPanel, PostForm, TextField } from '../../../../deploys/console/components/forms.tsx';
import { Badge, TONES } from '../../../../deploys/console/components/icons.tsx';
import { Pager, Tabs } from '../../../../deploys/console/components/links.tsx';
import { Live } from '../../../../deploys/console/components/panels.tsx';
import { type Column, Table } from '../../../../deploys/console/components/table.tsx';

describe('a table', () => {
  const columns: readonly Column<string>[] = [
    ['Name', (row) => row, 'head'],
    ['Calls', () => '7', 'end'],
  ];
  test('names its columns and rows, and its cells carry the labels for phones', () => {
    const html = render(<Table caption="Keys" columns={columns} rows={['a']} keyOf={String} empty="none" />);
    expect(html).toContain('<caption class="hidden">Keys</caption>');
    expect(html).toContain('<th scope="col" role="columnheader">Name</th>');
    expect(html).toContain('<th scope="row" role="rowheader" class="row-head">a</th>');
    expect(html).toContain('<td role="cell" class="align-end" data-label="Calls">7</td>');
  });
  test('without rows is what stands in its place', () => {
    expect(
      render(<Table caption="Keys" columns={columns} rows={[]} keyOf={String} empty={<p>None</p>} />),
    ).toBe('<p>None</p>');
  });
});

test('every badge has a shape of its own beside its colour and word', () => {
  const paths = TONES.map((tone) => /d="([^"]+)"/.exec(render(<Badge tone={tone}>x</Badge>))?.[1]);
  expect(new Set(paths).size).toBe(TONES.length);
});

test('a field is described by its error first and then its hint', () => {
  const html = render(<TextField name="url" label="URL" hint="hint" error="error" />);
  expect(html).toContain('<label for="url">');
  expect(html).toContain('aria-invalid="true" aria-describedby="url-error url-hint"');
  expect(render(<TextField name="url" label="URL" />)).not.toContain('aria-');
});

test('errors stand together above a form, as links to their fields, and only if there are any', () => {
  const html = render(
    <PostForm action="/x" errors={{ url: 'Wrong.', form: 'All wrong.', name: undefined }}>
      x
    </PostForm>,
  );
  expect(html).toContain('role="alert"');
  expect(html).toContain('<li><a href="#url">Wrong.</a></li><li>All wrong.</li>');
  expect(
    render(
      <PostForm action="/x" errors={{ url: undefined }}>
        x
      </PostForm>,
    ),
  ).not.toContain('alert');
});

test('what cannot be undone asks for its name', () => {
  const html = render(
    <ConfirmPanel title="Delete" action="/x" phrase="acme" button="Delete">
      It goes.
    </ConfirmPanel>,
  );
  expect(html).toContain('Type acme to confirm');
  expect(html).toMatch(/<input [^>]*name="confirm"[^>]*required/);
});

test('an address is short to look at and whole to copy', () => {
  const address = 'JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4';
  const html = render(<ShortAddress id="a" address={address} of="Jupiter" />);
  expect(html).toContain(`data-full="${address}" title="${address}">JUP6…TaV4<`);
  expect(html).toContain('aria-label="Copy the address of Jupiter"');
});

test('a chart has its numbers in a table too, newest first, with gaps as gaps', () => {
  const series = [{ label: 'Calls', values: [5, null, 1_234] }];
  const timesMs = [0, 3_600_000, 7_200_000];
  const html = render(
    <Chart id="c" title="Calls" kind="line" timesMs={timesMs} series={series} unit="calls" />,
  );
  const cells = [...html.matchAll(/data-label="Calls">([^<]+)</g)].map(([, cell]) => cell);
  expect(cells).toEqual(['1,234', '–', '5']);
});

test('a live part asks for its own page and takes itself out of it', () => {
  const html = render(
    <Live id="rows" from="/a?b=c" everySeconds={10}>
      x
    </Live>,
  );
  expect(html).toBe(
    '<div id="rows" data-live="true" hx-get="/a?b=c" hx-trigger="every 10s" hx-select="#rows" hx-swap="outerHTML">x</div>',
  );
});

test('a list on one page has no pages to turn', () => {
  expect(render(<Pager />)).toBe('');
  expect(render(<Pager older="/a?after=1" />)).toContain('href="/a?after=1"');
});

test('the tab that is seen is marked', () => {
  const html = render(
    <Tabs
      label="Views"
      tabs={[
        { label: 'A', to: '/a', isCurrent: true },
        { label: 'B', to: '/b', isCurrent: false },
      ]}
    />,
  );
  expect(html).toContain('<a href="/a" aria-current="page">A</a>');
  expect(html).toContain('<a href="/b">B</a>');
});

test('times are for machines too', () => {
  const atMs = Date.UTC(2026, 10, 21, 22, 5, 9);
  expect(render(<Time atMs={atMs} />)).toBe(
    '<time datetime="2026-11-21T22:05:09.000Z" class="time">2026-11-21 22:05:09<abbr class="zone">UTC</abbr></time>',
  );
  expect(render(<Ago atMs={atMs} nowMs={atMs + 60_000} />)).toBe(
    '<time datetime="2026-11-21T22:05:09.000Z" title="2026-11-21 22:05:09 UTC">1 min ago</time>',
  );
});
