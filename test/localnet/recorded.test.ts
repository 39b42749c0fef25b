import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { parseJson } from '../../localnet/json/value.ts';
import { recordedExchanges } from '../agave/exchanges.ts';
import { bodyOf, type Question, questionsFor } from '../agave/questions.ts';
import { setScene } from '../agave/scene.ts';
import { answerShape } from '../agave/shape.ts';
import { startServed } from './harness.ts';

const recorded = recordedExchanges();

/** Where the embedded chain answers otherwise than Agave 3.1.8, and why. */
const OTHERWISE: Readonly<Record<string, string>> = {
  'getInflationReward 1': 'no inflation: every epoch that is over paid nothing',
  'getInflationReward 2': 'its chain is older than epoch 99',
  'getClusterNodes 1': 'no gossip, and the clientId of Agave 4',
  'getBlockCommitment 1': 'no votes',
  'getHighestSnapshotSlot 1': 'no snapshots',
  'getSupply 1': 'no stake of a genesis',
  'getSignaturesForAddress 1': 'the transactionIndex of Agave 4',
  'getSignaturesForAddress 2': 'the transactionIndex of Agave 4',
  'getSignaturesForAddress 3': 'the transactionIndex of Agave 4',
  'getSignaturesForAddress 4': 'the transactionIndex of Agave 4',
  'getTransaction 1': 'no model of costs: costUnits is left out',
  'getTransaction 2': 'no model of costs: costUnits is left out',
  'getTransaction 3': 'no model of costs: costUnits is left out',
  'getBlock 1': 'no costUnits, no votes, no rewards for fees',
  'getBlock 2': 'no votes, no rewards for fees',
  'getBlock 5': 'no costUnits, no votes',
  'getBlocks 3': 'its chain is longer than the range',
  'getFeeForMessage 2': 'the words of the decoder of Agave 4',
  'getProgramAccounts 8': 'the vote state of Agave 4, and no votes',
};

/** No answer to the question, whatever it was. */
const NOTHING = /^(?:null|\[\]|\{\}|-32(?:700|600|601|603) .*)$/;

let net: Awaited<ReturnType<typeof startServed>>;
let questions: ReadonlyMap<string, Question>;
beforeAll(async () => {
  net = await startServed();
  questions = new Map(questionsFor(await setScene(net.url)).map((each) => [each.name, each]));
}, 30_000);
afterAll(() => net[Symbol.asyncDispose]());

describe('the embedded chain answers in the shape of Agave 3.1.8', () => {
  test('every recorded exchange is asked, and nothing else', () => {
    const missing = [...questions.keys()].filter((name) => !recorded.has(name));
    expect(missing).toEqual(['getLeaderSchedule 1']); // too long to be recorded
    expect([...recorded.keys()].filter((name) => !questions.has(name))).toEqual([]);
    expect(Object.keys(OTHERWISE).filter((name) => !recorded.has(name))).toEqual([]);
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
    if (name in OTHERWISE) {
      expect(own).not.toBe(theirs);
      expect(own).not.toMatch(NOTHING);
    } else expect([response.status, own]).toEqual([status, theirs]);
  });
});
