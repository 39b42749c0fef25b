import { Counter, Registry } from 'prom-client';
import { droppedLines } from '../shared/log.ts';
import { createFigures } from './health/figures.ts';
import type { ProgramState } from './watch/change.ts';
import type { Latest, Unread } from './watch/watcher.ts';

const STATUSES: readonly ProgramState['status'][] = ['upgradeable', 'frozen', 'other_loader', 'missing'];

/** Metrics in a registry of their own. `readingAgeMs` is `undefined` until a first reading. */
export function createMetrics(readingAgeMs: () => number | undefined) {
  const registry = new Registry();
  const { counter, gauge, reading } = createFigures(registry);
  const readings = counter('deploys_readings_total', 'Readings of the watched programs', 'outcome');
  const found = counter('deploys_found_total', 'Deploys found since this process started');
  const programs = gauge('deploys_programs', 'Watched programs, as of the last reading', 'status');
  const answers = counter('deploys_api_answers_total', 'Responses of the programs endpoint', 'status');
  new Counter({
    name: 'deploys_log_lines_dropped_total',
    help: 'Log lines dropped because their reader was too slow',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(droppedLines());
    },
  });
  const mismatch = gauge(
    'sluice_usage_mismatch',
    'Credits by which usage and journals differed in the last daily comparison; anything but 0 is an alarm',
  );
  reading('deploys_reading_age_seconds', 'Time since the last successful reading began', () => {
    const ageMs = readingAgeMs();
    return ageMs === undefined ? undefined : ageMs / 1_000;
  });
  return {
    registry,
    noteRead: (latest: Latest, deploys: number): void => {
      readings.inc({ outcome: 'read' });
      found.inc(deploys);
      const states = [...latest.reading.programs.values()];
      for (const status of STATUSES)
        programs.set({ status }, states.filter((state) => state.status === status).length);
    },
    noteUnread: (kind: Unread['kind']): void => readings.inc({ outcome: kind }),
    noteAnswer: (status: number): void => answers.inc({ status: String(status) }),
    noteMismatch: (credits: number): void => mismatch.set(credits),
    answer: async (request: Request): Promise<Response> => {
      if (new URL(request.url).pathname !== '/metrics')
        return new Response('Not found. Metrics are at /metrics.\n', { status: 404 });
      return new Response(await registry.metrics(), { headers: { 'content-type': registry.contentType } });
    },
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
