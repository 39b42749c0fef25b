import fc from 'fast-check';

/** One member of an object as text: the name with its quotes, and the value. */
export type MemberText = Readonly<{ name: string; value: string }>;

const space = fc.constantFrom('', '', '', ' ', '\n', '\t', '\r\n', '  ');

const numberText = fc.oneof(
  fc.constantFrom('0', '-0', '1.5', '1e3', '-1E+2', '0.1e-7', '18446744073709551615', '18446744073709551616'),
  fc.bigInt({ min: -(2n ** 65n), max: 2n ** 65n }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
);

const stringText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 8 }).map((text) => JSON.stringify(text)),
  fc.constantFrom(
    '"2.0"',
    '"\\u006dethod"',
    '"\\ud800"',
    '"\\/"',
    '"\\"\\\\\\b"',
    '"\u2028"',
    '"getSlot"',
    '""',
  ),
);

const { value } = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom('null', 'true', 'false'),
    numberText,
    stringText,
    tie('array'),
    tie('object'),
  ),
  array: fc
    .tuple(fc.array(tie('value'), { maxLength: 4 }), space)
    .map(([values, gap]) => `[${gap}${values.join(`${gap},${gap}`)}${gap}]`),
  object: fc
    .tuple(fc.array(fc.tuple(stringText, tie('value')), { maxLength: 4 }), space)
    .map(
      ([members, gap]) =>
        `{${gap}${members.map(([name, of]) => `${name}${gap}:${gap}${of}`).join(`,${gap}`)}}`,
    ),
}));

/** The text of any JSON value, with every form of number, string and white space. */
export const jsonText: fc.Arbitrary<string> = value;

const memberText: fc.Arbitrary<MemberText> = fc.oneof(
  fc.record({ name: fc.constantFrom('"id"', '"\\u0069d"'), value: fc.oneof(numberText, stringText, value) }),
  fc.record({ name: fc.constantFrom('"method"', '"\\u006dethod"'), value: fc.oneof(stringText, value) }),
  fc.record({ name: fc.constantFrom('"params"', '"param\\u0073"'), value }),
  fc.record({
    name: fc.constantFrom('"jsonrpc"'),
    value: fc.constantFrom('"2.0"', '"2.0"', '"2\\u002e0"', '2.0'),
  }),
  fc.record({ name: stringText, value }),
);

/** The members of an object that looks like a call and may be wrong in any way but its grammar. */
export const membersText: fc.Arbitrary<readonly MemberText[]> = fc.oneof(
  fc.array(memberText, { maxLength: 6 }),
  fc
    .tuple(fc.oneof(numberText, stringText), stringText, value, fc.array(memberText, { maxLength: 2 }))
    .map(([id, method, params, more]) => [
      { name: '"jsonrpc"', value: '"2.0"' },
      { name: '"id"', value: id },
      { name: '"method"', value: method },
      { name: '"params"', value: params },
      ...more,
    ])
    .chain((members) => fc.shuffledSubarray(members, { minLength: Math.min(3, members.length) })),
);

/** `{…}` with white space between everything. */
export function objectText(members: readonly MemberText[], gap: string): string {
  return `{${gap}${members.map(({ name, value: of }) => `${name}${gap}:${gap}${of}${gap}`).join(`,${gap}`)}}`;
}

/** Bytes near those of a text: some deleted, some put in, some doubled. */
export function mutated(text: fc.Arbitrary<string>): fc.Arbitrary<Uint8Array> {
  const byte = fc.oneof(
    fc.integer({ min: 0, max: 255 }),
    fc.constantFrom(...Buffer.from('{}[]",:\\0-.eEu \n')),
  );
  const mutation = fc.record({
    kind: fc.constantFrom('delete', 'insert', 'double'),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    length: fc.integer({ min: 1, max: 3 }),
    byte,
  });
  return fc.tuple(text, fc.array(mutation, { maxLength: 3 })).map(([from, mutations]) => {
    let bytes = Buffer.from(from);
    for (const { kind, at, length, byte: extra } of mutations) {
      const i = Math.floor(at * bytes.length);
      const [before, after] = [bytes.subarray(0, i), bytes.subarray(i)];
      if (kind === 'delete') bytes = Buffer.concat([before, after.subarray(length)]);
      else if (kind === 'insert') bytes = Buffer.concat([before, Buffer.from([extra]), after]);
      else bytes = Buffer.concat([before, after.subarray(0, length), after]);
    }
    return new Uint8Array(bytes);
  });
}
