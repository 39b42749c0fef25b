import { describe, expect, test } from 'bun:test';
import { EMPTY } from '../../../gateway/http/slab.ts';
import { nextPhase, type Phase, type PhaseEvent } from '../../../gateway/upstream/http-connection.ts';

type Body = { readonly kind: 'body' };

const handler = { onOutcome: () => undefined };
const PHASES: readonly Phase<Body>[] = [
  { kind: 'idle' },
  { kind: 'queued', handler, request: EMPTY },
  { kind: 'sent', handler, bytes: EMPTY, passedBytes: 0 },
  { kind: 'body' },
  { kind: 'closed' },
];
const EVENTS: readonly PhaseEvent<Body>[] = [
  { kind: 'request', handler, request: Buffer.from('POST') },
  { kind: 'written' },
  { kind: 'part', bytes: Buffer.from('HTTP'), passedBytes: 7 },
  { kind: 'head', body: { kind: 'body' } },
  { kind: 'ended' },
  { kind: 'closed' },
];
/** Where each event leads; a phase stays where there is none. */
const ARROWS: Readonly<Record<string, Phase<Body>>> = {
  'idle request': { kind: 'queued', handler, request: Buffer.from('POST') },
  'queued written': { kind: 'sent', handler, bytes: EMPTY, passedBytes: 0 },
  'sent part': { kind: 'sent', handler, bytes: Buffer.from('HTTP'), passedBytes: 7 },
  'sent head': { kind: 'body' },
  'sent ended': { kind: 'idle' },
  'body ended': { kind: 'idle' },
  'idle closed': { kind: 'closed' },
  'queued closed': { kind: 'closed' },
  'sent closed': { kind: 'closed' },
  'body closed': { kind: 'closed' },
};

describe('the phases of a connection', () => {
  const pairs = PHASES.flatMap((phase) => EVENTS.map((event) => [phase, event] as const));

  test.each(pairs.map(([phase, event]) => [`${phase.kind} ${event.kind}`, phase, event] as const))(
    '%s',
    (name, phase, event) => expect(nextPhase(phase, event)).toEqual(ARROWS[name] ?? phase),
  );

  test.each(['gateway/upstream/http-connection.ts', 'docs/architecture.md'])(
    'are drawn in %s as they are',
    async (path) => {
      const text = await Bun.file(`${import.meta.dir}/../../../${path}`).text();
      const isOwn = (diagram: string) => diagram.includes('--> queued') && diagram.includes('--> body');
      const own = text.split('stateDiagram-v2').filter((each) => isOwn(each.split('```')[0] ?? ''));
      const [diagram = ''] = own[0]?.split('```') ?? [];
      const drawn = [...diagram.matchAll(/(\w+) --> (\w+)/g)].map(([, from, to]) => `${from} ${to}`);
      const arrows = Object.entries(ARROWS).map(([name, { kind }]) => `${name.split(' ')[0]} ${kind}`);
      expect(drawn.toSorted()).toEqual(arrows.toSorted());
    },
  );
});
