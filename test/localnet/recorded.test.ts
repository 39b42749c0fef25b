import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { parseJson } from '../../localnet/json/value.ts';
import { recordedExchanges } from '../agave/exchanges.ts';
import { bodyOf, type Question, questionsFor } from '../agave/questions.ts';
import { setScene } from '../agave/scene.ts';
import { answerShape } from '../agave/shape.ts';
import { startServed } from './served.ts';

const recorded = recordedExchanges();

/** Where the embedded chain answers otherwise than Agave 3.1.8, and why. */
const OTHERWISE: Readonly<Record<string, string>> = {};

let net: Awaited<ReturnType<typeof startServed>>;
let questions: ReadonlyMap<string, Question>;
beforeAll(async () => {
  net = await startServed();
  questions = new Map(questionsFor(await setScene(net.url)).map((each) => [each.name, each]));
}, 30_000);
afterAll(() => net[Symbol.asyncDispose]());

describe('the embedded chain answers in the shape of Agave 3.1.8', () => {
  test('every recorded exchange is asked, and nothing else', () => {
    expect([...questions.keys()]).toEqual([...recorded.keys()]);
    expect(recorded.size).toBeGreaterThan(150);
  });

  test.each([...recorded.values()])('$name', async ({ name, status, answer }) => {
    const question = questions.get(name);
    if (question === undefined) throw new Error(`${name} is no question`);
    const response = await fetch(net.url, {
      method: 'POST',
      body: bodyOf(question, '1'),
      headers: { 'content-type': 'application/json' },
    });
    const own = answerShape(parseJson(await response.text()));
    const theirs = answerShape(parseJson(answer));
    if (name in OTHERWISE) expect(own).not.toBe(theirs);
    else expect([response.status, own]).toEqual([status, theirs]);
  });
});
