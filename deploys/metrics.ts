import { Counter, Registry } from 'prom-client';
import { droppedLines } from '../shared/log.ts';
import { createFigures } from './health/figures.ts';
import type { ProgramState } from './watch/change.ts';
import type { Latest, Unread } from './watch/watcher.ts';

const STATUSES = [
  'upgradeable',
  'frozen',
  'other_loader',
  'missing',
] as const satisfies readonly ProgramState['status'][];

/** Figures in a registry of their own. `readingAgeMs` is `undefined` until a first reading. */
export function createMetrics(readingAgeMs: () => number | undefined) {
  const registry = new Registry();
  const { counter, gauge, reading } = createFigures(registry);
  const readings = counter(
    'deploys_readings_total',
    'Readings of the watched programs, by how they ended',
    'outcome',
  );
  const found = counter('deploys_found_total', 'Deploys seen between two readings of this run');
  const programs = gauge('deploys_programs', 'Watched programs, by status in the last reading', 'status');
  const answers = counter(
    'deploys_api_answers_total',
    'Responses of the programs endpoint, by HTTP status',
    'status',
  );
  new Counter({
    name: 'deploys_log_lines_dropped_total',
    help: 'Lines of standard output and error that no reader took in time',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(droppedLines());
    },
  });
  const mismatch = gauge(
    'sluice_usage_mismatch',
    "Credits by which usage and the gateways' journals differ, at the last daily comparison; anything but 0 is an alarm",
  );
  reading(
    'deploys_reading_age_seconds',
    'Seconds since the last good reading began; absent before the first one',
    () => {
      const ageMs = readingAgeMs();
      return ageMs === undefined ? undefined : ageMs / 1_000;
    },
  );
  return {
    /** Where other parts put their figures. */
    registry,
    noteRead: (latest: Latest, deploys: number): void => {
      readings.inc({ outcome: 'read' });
      found.inc(deploys);
      for (const [status, count] of countsOf(latest)) programs.set({ status }, count);
    },
    noteUnread: (kind: Unread['kind']): void => readings.inc({ outcome: kind }),
    noteAnswer: (status: number): void => answers.inc({ status: String(status) }),
    /** By how many credits usage and the gateways' journals differ. */
    noteMismatch: (credits: number): void => mismatch.set(credits),
    /** GET /metrics. */
    answer: async (request: Request): Promise<Response> => {
      if (new URL(request.url).pathname !== '/metrics')
        return new Response('Not found. Metrics are at /metrics.\n', { status: 404 });
      return new Response(await registry.metrics(), { headers: { 'content-type': registry.contentType } });
    },
  };
}

/** The figures of this app for Prometheus. Label values are the `kind`s of the code's own unions. */
export type Metrics = ReturnType<typeof createMetrics>;

function countsOf({ reading }: Latest): Map<ProgramState['status'], number> {
  const counts = new Map<ProgramState['status'], number>(STATUSES.map((status) => [status, 0]));
  for (const { status } of reading.programs.values()) counts.set(status, (counts.get(status) ?? 0) + 1);
  return counts;
}
