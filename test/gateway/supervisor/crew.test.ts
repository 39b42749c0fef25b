import { expect, test } from 'bun:test';
import { type Child, type Ending, STILLBORN_MAX } from '../../../gateway/workers.ts';
import { createCrew, createTally, type CrewEnd } from '../../../gateway/supervisor.ts';
import { createVirtualClock, type VirtualClock } from '../../fakes/chain-clock.ts';
import { silentLog } from '../../started/gateway.ts';

/** A process that listens and ends when the test says so. */
function scripted(slot: number) {
  const listening = Promise.withResolvers<boolean>();
  const ended = Promise.withResolvers<Ending>();
  const signals: string[] = [];
  const child: Child = {
    pid: slot,
    listening: listening.promise,
    ended: ended.promise,
    count: () => Promise.resolve([]),
    status: () => Promise.resolve(undefined),
    signal: (name) => void signals.push(name),
  };
  return {
    slot,
    child,
    signals,
    listen: () => listening.resolve(true),
    end(how = 'SIGKILL', words = '') {
      listening.resolve(false);
      ended.resolve({ how, words });
    },
  };
}

type Scripted = ReturnType<typeof scripted>;

/** A crew of `size` scripted processes on a clock that stands still. */
function crewOf(size: number) {
  const clock = createVirtualClock();
  const launched: Scripted[] = [];
  let refuses = false;
  const launch = (slot: number) => {
    if (refuses) throw new Error('EAGAIN');
    const process = scripted(slot);
    launched.push(process);
    return process.child;
  };
  const lines: unknown[] = [];
  const crew = createCrew({ size, launch, clock, log: silentLog(lines), tally: createTally() });
  const stop = new AbortController();
  let isReady = false;
  const end: Promise<CrewEnd> = crew.run(stop.signal, () => void (isReady = true));
  const at = (index: number): Scripted => {
    const process = launched[index];
    if (process === undefined) throw new Error(`process ${index} was not launched`);
    return process;
  };
  return {
    crew,
    clock,
    launched,
    lines,
    at,
    end,
    stop: () => stop.abort(),
    isReady: () => isReady,
    /** Whether the system refuses to start processes. */
    refuse: (is: boolean) => void (refuses = is),
  };
}

type CrewUnderTest = ReturnType<typeof crewOf>;

const settled = (clock: VirtualClock) => clock.advance(0);

async function started(size: number): Promise<CrewUnderTest> {
  const made = crewOf(size);
  await settled(made.clock);
  made.at(0).listen();
  await settled(made.clock);
  for (const process of made.launched) process.listen();
  await settled(made.clock);
  return made;
}

test('the first process starts alone, the others when it listens, and ready is when all do', async () => {
  const { launched, at, clock, isReady } = crewOf(3);
  await settled(clock);
  expect(launched.map(({ slot }) => slot)).toEqual([1]);
  at(0).listen();
  await settled(clock);
  expect(launched.map(({ slot }) => slot)).toEqual([1, 2, 3]);
  at(1).listen();
  await settled(clock);
  expect(isReady()).toBe(false);
  at(2).listen();
  await settled(clock);
  expect(isReady()).toBe(true);
});

test.each([0, 1])(
  'process %i that ends before it listens at the start ends all, with its words',
  async (which) => {
    const { launched, at, clock, end, isReady } = crewOf(2);
    await settled(clock);
    if (which === 1) at(0).listen();
    await settled(clock);
    at(which).end('code 1', 'The certificate is not there.');
    await settled(clock);
    for (const process of launched) process.end('code 0');
    expect(await end).toEqual({ kind: 'gave-up', words: 'The certificate is not there.' });
    expect(launched.map(({ signals }) => signals)).toEqual(which === 0 ? [[]] : [['SIGTERM'], []]);
    expect(isReady()).toBe(false);
  },
);

test('a process that dies is replaced in its seat, the second time after a wait', async () => {
  const { crew, clock, launched, at } = await started(2);
  await clock.advance(20_000);
  at(1).end();
  await settled(clock);
  expect(launched.map(({ slot }) => slot)).toEqual([1, 2, 2]);
  expect(crew.listening()).toBe(1);
  at(2).listen();
  await settled(clock);
  expect([crew.listening(), crew.restarts()]).toEqual([2, 1]);
  at(2).end();
  await clock.advance(99);
  expect(launched).toHaveLength(3);
  await clock.advance(1);
  expect(launched).toHaveLength(4);
});

test('when none serves and one cannot even start again and again, all ends with its words', async () => {
  const { clock, launched, at, end } = await started(1);
  at(0).end();
  for (let death = 1; death <= STILLBORN_MAX; death++) {
    await clock.advance(10_000);
    expect(launched).toHaveLength(death + 1);
    at(death).end('code 1', `death ${death}`);
  }
  expect(await end).toEqual({ kind: 'gave-up', words: `death ${STILLBORN_MAX}` });
});

test('while another serves, a seat that cannot be filled is tried for ever', async () => {
  const { clock, launched, at, stop, end } = await started(2);
  at(1).end();
  for (let death = 1; death <= 3 * STILLBORN_MAX; death++) {
    await clock.advance(10_000);
    at(death + 1).end('code 1', 'no');
  }
  await clock.advance(10_000);
  expect(launched).toHaveLength(3 * STILLBORN_MAX + 3);
  stop();
  for (const process of launched) process.end('code 0');
  expect(await end).toEqual({ kind: 'drained' });
});

test('a process that the system refuses to start is tried again, and the others go on', async () => {
  const { crew, clock, launched, at, refuse } = await started(2);
  refuse(true);
  at(1).end();
  await clock.advance(60_000);
  expect([launched.length, crew.listening()]).toEqual([2, 1]);
  refuse(false);
  await clock.advance(10_000);
  expect(launched.map(({ slot }) => slot)).toEqual([1, 2, 2]);
});

test('when the system refuses the first process, that is said', async () => {
  const clock = createVirtualClock();
  const launch = () => {
    throw new Error('EAGAIN');
  };
  const crew = createCrew({ size: 2, launch, clock, log: silentLog(), tally: createTally() });
  const end = crew.run(new AbortController().signal, () => undefined);
  expect(await end).toEqual({ kind: 'gave-up', words: 'A gateway process could not be started (EAGAIN).' });
});

test('a stop asks every process to drain, waits for all, and starts none again', async () => {
  const { clock, launched, at, stop, end } = await started(3);
  stop();
  await settled(clock);
  expect(launched.map(({ signals }) => signals)).toEqual([['SIGTERM'], ['SIGTERM'], ['SIGTERM']]);
  at(0).end('code 0');
  at(1).end('code 0');
  await clock.advance(1_000);
  at(2).end('code 0');
  expect(await end).toEqual({ kind: 'drained' });
  await clock.advance(60_000);
  expect(launched).toHaveLength(3);
});

test('a process that does not drain in time is killed, and it is said of which', async () => {
  const { clock, launched, at, stop, end } = await started(2);
  stop();
  await settled(clock);
  at(0).end('code 0');
  await clock.advance(28_000);
  expect(launched.map(({ signals }) => signals.at(-1))).toEqual(['SIGTERM', 'SIGKILL']);
  at(1).end();
  expect(await end).toEqual({ kind: 'killed', slots: [2] });
});

test('a stop before the first process listens is a stop', async () => {
  const { clock, at, stop, end, isReady } = crewOf(3);
  await settled(clock);
  stop();
  await settled(clock);
  expect(at(0).signals).toEqual(['SIGTERM']);
  at(0).end('code 0');
  expect(await end).toEqual({ kind: 'drained' });
  expect(isReady()).toBe(false);
});

test('a reload reaches those that listen; one that starts reads the config by itself', async () => {
  const { crew, clock, at } = await started(2);
  at(1).end();
  await settled(clock);
  crew.reload();
  expect([at(0).signals, at(2).signals]).toEqual([['SIGHUP'], []]);
});
