/** @jsxImportSource preact */
import { describe, expect, test } from 'bun:test';
import type { ComponentChildren } from 'preact';
import { render } from 'preact-render-to-string';
import { Chart, Sparkline } from '../../../../deploys/console/components/charts.tsx';
import { CodeBlock, SecretBox, ShortAddress } from '../../../../deploys/console/components/code.tsx';
import {
  ConfirmPanel,
  Filters,
  Hidden,
  PostForm,
  SelectField,
  Submit,
  TextField,
} from '../../../../deploys/console/components/forms.tsx';
import { Badge } from '../../../../deploys/console/components/icons.tsx';
import { Crumbs, DrawerLink, Link, Pager } from '../../../../deploys/console/components/links.tsx';
import { Facts, Live } from '../../../../deploys/console/components/panels.tsx';
import { Table } from '../../../../deploys/console/components/table.tsx';
import { forAccount } from '../../../../deploys/console/router.ts';
import { CUSTOMER, startConsole } from '../started.tsx';

const HOSTILE = [
  `<script>alert(1)</script>`,
  `" onmouseover="alert(1)`,
  `' autofocus onfocus='alert(1)`,
  `</title></textarea></code><img src=x onerror=alert(1)>`,
  `{"constructor":null,"type":"script"}`,
];

/** What the parts make of one text, wherever they take one. */
function everywhere(text: string): readonly ComponentChildren[] {
  return [
    <p>{text}</p>,
    <Badge tone="good">{text}</Badge>,
    <Crumbs crumbs={[{ label: text, to: '/' }]} here={text} />,
    <Facts facts={[[text, text]]} />,
    <Link to="/" label={text}>
      {text}
    </Link>,
    <ShortAddress id="a" address={text} of={text} />,
    <CodeBlock id="c" label={text} text={text} />,
    <SecretBox name={text} secret={text} />,
    <Sparkline values={[1]} label={text} />,
    <TextField name="n" label={text} value={text} hint={text} error={text} placeholder={text} />,
    <SelectField name="s" label={text} value={text} options={[{ value: text, label: text }]} />,
    <PostForm action="/x" errors={{ n: text, form: text }} label={text}>
      <Hidden name="h" value={text} />
      <Submit>{text}</Submit>
    </PostForm>,
    <ConfirmPanel title={text} action="/x" phrase={text} button={text}>
      {text}
    </ConfirmPanel>,
    <Chart
      id="chart"
      title={text}
      kind="line"
      timesMs={[0]}
      series={[{ label: text, values: [1] }]}
      unit={text}
    />,
    <Table caption={text} columns={[[text, () => text]]} rows={[1]} keyOf={String} empty={text} />,
  ];
}

/** Reads HTML as a browser does: every element with its attributes. */
function elementsOf(html: string): readonly (readonly [tag: string, attributes: readonly string[]])[] {
  const found: [string, string[]][] = [];
  new HTMLRewriter()
    .on('*', {
      element: ({ tagName, attributes }) => void found.push([tagName, [...attributes].map(([name]) => name)]),
    })
    .transform(html);
  return found;
}

describe.each(HOSTILE)('the text %p', (text) => {
  test('makes the same elements and attributes as a harmless one, in every part', () => {
    for (const [i, made] of everywhere(text).entries()) {
      const harmless = everywhere('harmless text')[i];
      expect(elementsOf(render(<div>{made}</div>))).toEqual(elementsOf(render(<div>{harmless}</div>)));
    }
  });

  test('does so in the document, as title, account and e-mail', async () => {
    const shown = async (words: string) => {
      const page = forAccount('/accounts/:accountId/x', {
        get: ({ show }) => show({ title: words, body: <p>{words}</p> }),
      });
      const account = { id: 7, name: words, plan: undefined };
      const { ask } = startConsole({ ...CUSTOMER, email: words }, [page], { accountOf: () => account });
      return elementsOf(await (await ask('/accounts/7/x')).text());
    };
    expect(await shown(text)).toEqual(await shown('harmless text'));
  });
});

describe('an address that leads elsewhere', () => {
  const ELSEWHERE = [
    'javascript:alert(1)',
    'JaVaScript:alert(1)',
    ' javascript:alert(1)',
    'data:text/html,x',
    'https://evil.example.com/',
    '//evil.example.com/',
    '/\\evil.example.com/',
    '/\t/evil.example.com/',
    '/\n/evil.example.com/',
    'evil',
    '',
  ];
  test.each(ELSEWHERE)('%p becomes no link, form or refresh', (to) => {
    const html = render(
      <div>
        <Link to={to}>a</Link>
        <DrawerLink to={to}>b</DrawerLink>
        <Pager first={to} older={to} />
        <PostForm action={to}>c</PostForm>
        <Filters path={to} isFiltered>
          d
        </Filters>
        <Live id="e" from={to}>
          e
        </Live>
      </div>,
    );
    const attributes = elementsOf(html).flatMap(([, names]) => names);
    for (const name of ['href', 'action', 'hx-get']) expect(attributes).not.toContain(name);
  });
});
