import { describe, expect, test } from 'bun:test';
import {
  block,
  branch,
  branchIf,
  get,
  i32,
  loop,
  moduleOf,
  set,
  signed,
  unsigned,
} from '../../../gateway/json/structure.ts';

describe('numbers in LEB128', () => {
  // The first two are the examples of the format's own description.
  test.each([
    [624_485, [0xe5, 0x8e, 0x26]],
    [0, [0]],
    [127, [0x7f]],
    [128, [0x80, 0x01]],
    [2_147_483_647, [0xff, 0xff, 0xff, 0xff, 0x07]],
  ])('%p without a sign', (value, bytes) => {
    expect(unsigned(value)).toEqual(bytes);
  });

  test.each([
    [-123_456, [0xc0, 0xbb, 0x78]],
    [0, [0]],
    [63, [0x3f]],
    [64, [0xc0, 0x00]],
    [-1, [0x7f]],
    [-64, [0x40]],
    [-65, [0xbf, 0x7f]],
    [-2_147_483_648, [0x80, 0x80, 0x80, 0x80, 0x78]],
  ])('%p with a sign', (value, bytes) => {
    expect(signed(value)).toEqual(bytes);
  });
});

test('a module has a kernel that does what it says', () => {
  const [FROM, TO, SUM] = [0, 1, 2];
  const bytes = moduleOf({
    params: ['i32', 'i32'],
    results: ['i32'],
    locals: ['i32'],
    body: [
      ...block(
        loop(
          branchIf(1, i32.exceeds(get(FROM), get(TO))),
          set(SUM, i32.add(get(SUM), get(FROM))),
          set(FROM, i32.sub(get(FROM), i32.of(-1))),
          branch(0),
        ),
      ),
      ...get(SUM),
    ],
  });
  const memory = new WebAssembly.Memory({ initial: 17 });
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { '': { memory } });
  const { kernel } = exports as unknown as { kernel: (from: number, to: number) => number }; // they have no types of their own
  expect(kernel(1, 100)).toBe(5_050);
});
