import { describe, expect, test } from 'bun:test';
import { type Element, readEnvelope } from '../../../gateway/request/envelope.ts';

const bytesOf = (text: string) => Buffer.from(text);
/** The words of a text. */
const words = (text: string) => text.split(/[ \n]+/);
const textOf = (bytes: Uint8Array | undefined) =>
  bytes === undefined ? undefined : new TextDecoder().decode(bytes);

/** The element of a text, with its slices as text. */
function elementOf(text: string) {
  const envelope = readEnvelope(bytesOf(`[${text}]`), 1);
  return envelope.kind === 'malformed' ? envelope : envelope.elements.map(readable)[0];
}

function readable(element: Element) {
  switch (element.kind) {
    case 'call':
      return { ...element, id: textOf(element.id), params: textOf(element.params) };
    case 'invalid':
      return { ...element, id: textOf(element.id) };
    case 'notification':
      return element;
  }
}

const invalid = (id: string, reason: string) => ({
  kind: 'invalid' as const,
  id,
  reason: `Invalid request: ${reason}`,
});
const BAD_ID = invalid('null', 'id must be a string, an unsigned integer or null');

describe('the id', () => {
  test.each(
    words(`0 "0" 1 12345678901234567890 18446744073709551615 9007199254740993 null "" "\\u0031" "é🙂" "\\ud800"
      "\\"},{\\"" "0000"`),
  )('%p is kept verbatim', (id) => {
    expect(elementOf(`{"jsonrpc":"2.0","id": ${id} ,"method":"getSlot"}`)).toEqual({
      kind: 'call',
      id,
      method: 'getSlot',
      params: undefined,
    });
  });

  test.each(
    words(`18446744073709551616 99999999999999999999 100000000000000000000 -1 -0 1.5 1.0 0.0 1e3 0e0 true false {} []
      [1] {"id":1}`),
  )('%p, which Agave cannot answer, is refused and answered to null', (id) => {
    expect(elementOf(`{"jsonrpc":"2.0","id":${id},"method":"getSlot"}`)).toEqual(BAD_ID);
  });
});

describe('a call without an id is a notification', () => {
  test('whatever its params', () => {
    expect(elementOf('{"jsonrpc":"2.0","method":"m"}')).toEqual({ kind: 'notification' });
    expect(elementOf('{"jsonrpc":"2.0","method":"m","params":[1],"x":{"id":1}}')).toEqual({
      kind: 'notification',
    });
  });

  test('only when the rest of it is a request; otherwise it is answered to null', () => {
    expect(elementOf('{"method":"m"}')).toEqual(invalid('null', 'jsonrpc must be "2.0"'));
    expect(elementOf('{"jsonrpc":"2.0"}')).toEqual(invalid('null', 'method must be a string'));
    expect(elementOf('{"jsonrpc":"2.0","method":"m","params":1}')).toEqual(
      invalid('null', 'params must be an array or an object'),
    );
  });

  test('an id of null is an id', () => {
    expect(elementOf('{"jsonrpc":"2.0","method":"m","id":null}')).toMatchObject({ kind: 'call', id: 'null' });
  });
});

describe('members twice are refused, because backends differ in which one they read', () => {
  const CALL = ['"jsonrpc":"2.0"', '"id":7', '"method":"m"', '"params":[]'];
  test.each([
    ['jsonrpc', '"jsonrpc":"2.0"', '7'],
    ['jsonrpc', '"json\\u0072pc":"2.0"', '7'],
    ['method', '"method":"m"', '7'],
    ['method', '"\\u006dethod":"sendTransaction"', '7'],
    ['method', '"\\u006Dethod":"m"', '7'],
    ['params', '"params":[]', '7'],
    ['params', '"p\\u0061rams":null', '7'],
  ])('%s twice, as %s', (name, member, id) => {
    for (const members of [
      [...CALL, member],
      [member, ...CALL],
    ]) {
      expect(elementOf(`{${members.join()}}`)).toEqual(invalid(id, `two members named ${name}`));
    }
  });

  test.each([['"id":7'], ['"id":8'], ['"\\u0069d":7'], ['"i\\u0064":null']])(
    'the id twice, as %s, is answered to null because it is not known which is meant',
    (member) => {
      for (const members of [
        [...CALL, member],
        [member, ...CALL],
      ]) {
        expect(elementOf(`{${members.join()}}`)).toEqual(invalid('null', 'two members named id'));
      }
    },
  );

  test('the id and another member twice is answered to null too', () => {
    for (const twice of ['"id":8,"method":"n"', '"method":"n","id":8']) {
      expect(elementOf(`{${CALL.join()},${twice}}`)).toEqual(invalid('null', 'two members named id'));
    }
  });

  test('other members may stand twice', () => {
    expect(elementOf(`{${CALL.join()},"x":1,"x":2,"ID":1,"Id":2,"":1,"":2}`)).toMatchObject({
      kind: 'call',
      id: '7',
    });
  });

  test('a name that only looks like one of ours is another', () => {
    expect(
      elementOf(`{${CALL.join()},"id ":1,"\\u0000id":1,"\\"id\\"":1,"__proto__":{"id":1},"\\ud800":1}`),
    ).toMatchObject({
      kind: 'call',
      id: '7',
    });
  });
});

describe('jsonrpc', () => {
  test.each([['"1.0"'], ['2.0'], ['2'], ['"2"'], ['" 2.0"'], ['"2.0\\u0000"'], ['null'], ['["2.0"]']])(
    '%p is refused under the id of the call',
    (version) => {
      expect(elementOf(`{"jsonrpc":${version},"id":"a","method":"m"}`)).toEqual(
        invalid('"a"', 'jsonrpc must be "2.0"'),
      );
    },
  );

  test('missing is refused under the id of the call', () => {
    expect(elementOf('{"id":"a","method":"m"}')).toEqual(invalid('"a"', 'jsonrpc must be "2.0"'));
    expect(elementOf('{}')).toEqual(invalid('null', 'jsonrpc must be "2.0"'));
  });
});

describe('method', () => {
  test.each([['1'], ['null'], ['["getSlot"]'], ['{}'], ['true']])('%p is refused', (method) => {
    expect(elementOf(`{"jsonrpc":"2.0","id":1,"method":${method}}`)).toEqual(
      invalid('1', 'method must be a string'),
    );
  });

  test.each([
    ['"getSlot"', 'getSlot'],
    ['"get\\u0053lot"', 'getSlot'],
    ['""', ''],
    ['"é🙂"', 'é🙂'],
    ['"\\ud83d\\ude42"', '🙂'],
    ['"\\ud800"', '\ud800'],
    ['"a\\"b\\\\"', 'a"b\\'],
    ['"\ufeffgetSlot"', '\ufeffgetSlot'],
  ])('%p is read as the text it stands for', (method, text) => {
    expect(elementOf(`{"jsonrpc":"2.0","id":1,"method":${method}}`)).toMatchObject({
      kind: 'call',
      method: text,
    });
  });

  test('of a megabyte is read whole', () => {
    const method = 'm'.repeat(1 << 20);
    expect(elementOf(`{"jsonrpc":"2.0","id":1,"method":"${method}"}`)).toMatchObject({
      kind: 'call',
      method,
    });
  });
});

describe('params', () => {
  test.each([['1'], ['"a"'], ['true'], ['false'], ['-1'], ['0']])('the scalar %p is refused', (params) => {
    expect(elementOf(`{"jsonrpc":"2.0","id":1,"method":"m","params":${params}}`)).toEqual(
      invalid('1', 'params must be an array or an object'),
    );
  });
});

test.each([['1'], ['"a"'], ['null'], ['true'], ['[]'], ['[{"jsonrpc":"2.0","id":1,"method":"m"}]']])(
  'an element that is %p is no request',
  (text) => {
    expect(elementOf(text)).toEqual(invalid('null', 'not an object'));
  },
);
