/** @jsxImportSource preact */
import { expect, test } from 'bun:test';
import type { ComponentChildren } from 'preact';
import { render } from 'preact-render-to-string';
import { Chart, pointsOf } from '../../../../deploys/console/components/charts.tsx';
import { ShortAddress } from '../../../../deploys/console/components/code.tsx';
import { PostForm, SelectField, TextField } from '../../../../deploys/console/components/forms.tsx';
import { Here, type Returned } from '../../../../deploys/console/components/here.ts';
import { Badge, type Column, Table, type Tone } from '../../../../deploys/console/components/panels.tsx';
import { Link, Pager } from '../../../../deploys/console/components/links.tsx';

/** A part of a page at `href`, where a form may come back. */
function rendered(part: ComponentChildren, returned?: Returned, href = 'https://x.example.com/') {
  return render(<Here.Provider value={{ url: new URL(href), nowMs: 0, returned }}>{part}</Here.Provider>);
}

test('a table names its columns and rows, and its cells carry the labels for phones', () => {
  const columns: readonly Column<string>[] = [
    ['Name', (row) => row, 'head'],
    ['Calls', () => '7', 'end'],
  ];
  const html = render(<Table caption="Keys" columns={columns} rows={['a']} empty="none" />);
  expect(html).toContain('<caption class="hidden">Keys</caption>');
  expect(html).toContain('<th scope="col" role="columnheader">Name</th>');
  expect(html).toContain('<th scope="row" role="rowheader" class="row-head">a</th>');
  expect(html).toContain('<td role="cell" class="align-end" data-label="Calls">7</td>');
});

test('every badge has a shape of its own beside its colour and word', () => {
  const tones: Record<Tone, 0> = { good: 0, bad: 0, warning: 0, waiting: 0, quiet: 0, accent: 0 };
  const shapes = Object.keys(tones).map(
    (tone) => /d="([^"]+)"/.exec(render(<Badge tone={tone as Tone}>x</Badge>))?.[1], // one of them
  );
  expect(new Set(shapes).size).toBe(6);
});

test('a form that comes back names what is wrong, above and at each field, and keeps all but passwords', () => {
  const html = rendered(
    <PostForm action="/x" button="Send">
      <TextField name="url" label="URL" value="before" hint="hint" />
      <TextField name="name" label="Name" value="before" />
      <TextField name="secret" label="Password" type="password" />
      <SelectField name="plan" label="Plan" value="a" options={[...'ab']} />
    </PostForm>,
    {
      action: '/x',
      errors: { url: 'Wrong.', form: 'All wrong.', name: undefined },
      sent: new URLSearchParams({ url: 'sent', secret: 'sent too', plan: 'b', other: 'none' }),
    },
  );
  expect(html).toContain('role="alert"');
  expect(html).toContain('<p>All wrong.</p>');
  expect(html.match(/<li>.*?<\/li>/g)).toEqual(['<li><a href="#url">Wrong.</a></li>']);
  expect(html).toContain('<label for="url">');
  expect(html).toContain('aria-invalid="true" aria-describedby="url-error url-hint"');
  expect(html).toMatch(/id="url"[^>]* value="sent"/);
  expect(html).toMatch(/<input id="name" name="name" type="text" value="before"/);
  expect(html).not.toContain('sent too');
  expect(html).toContain('<option value="b" selected>');
  const other = { action: '/y', errors: { url: 'Wrong.' } };
  for (const returned of [{ errors: { url: undefined } }, other])
    expect(rendered(<PostForm action="/x" button="Send" />, returned)).not.toContain('alert');
});

test('an address is short to look at and whole to copy', () => {
  const address = 'JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4';
  const html = render(<ShortAddress id="a" address={address} of="Jupiter" />);
  expect(html).toContain(`data-full="${address}" title="${address}">JUP6…TaV4<`);
  expect(html).toContain('aria-label="Copy address of Jupiter"');
  expect(render(<ShortAddress id="a" address="short" of="x" />)).toContain('>short<');
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

test('a sparkline spans its width from the ground to the top', () => {
  expect(pointsOf([0, 5, 10])).toBe('0.0,23.0 48.0,12.0 96.0,1.0');
  expect(pointsOf([0, 0])).toBe('0.0,23.0 96.0,23.0');
});

test('a list has a way back and a way on where there are any, and keeps its filters but no message', () => {
  const pager = (query: string, next?: number) =>
    rendered(<Pager by="after" next={next} />, undefined, `https://x.example.com/a${query}`);
  expect(pager('')).toBe('');
  expect(pager('?q=b+c&done=saved', 2).match(/href="[^"]*"/g)).toEqual(['href="/a?q=b+c&amp;after=2"']);
  expect(pager('?after=1').match(/href="[^"]*"/g)).toEqual(['href="/a"']);
});

test.each([
  'javascript:alert(1)',
  ' javascript:alert(1)',
  'data:text/html,x',
  'https://evil.example.com/',
  '//evil.example.com/',
  '/\\evil.example.com/',
  '/\t/evil.example.com/',
  '/\n/evil.example.com/',
  'evil',
  '',
])('an address that leads elsewhere becomes no link or form, as one of the console does: %p', (elsewhere) => {
  const ledBy = (to: string) =>
    render(
      <div>
        <Link to={to}>a</Link>
        <PostForm action={to} button="c" />
      </div>,
    ).match(/ (?:href|action)=/g);
  expect([ledBy('/in'), ledBy(elsewhere)]).toEqual([[' href=', ' action='], null]);
});
