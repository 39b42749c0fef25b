import { afterAll } from 'bun:test';

/** Ends what all tests of a file use after the last of them; the last one made ends first. */
export function shared<T extends Disposable | AsyncDisposable>(one: T): T {
  if (made.length === 0)
    afterAll(async () => {
      for (let last = made.pop(); last !== undefined; last = made.pop())
        if (Symbol.asyncDispose in last) await last[Symbol.asyncDispose]();
        else last[Symbol.dispose]();
    });
  made.push(one);
  return one;
}

const made: (Disposable | AsyncDisposable)[] = [];
