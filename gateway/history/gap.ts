import type { Backend } from '../upstream/backend.ts';
import type { Gap } from '../upstream/selection.ts';
import { reachOf, tiersOf, topOf } from './tiers.ts';

/**
 * The lowest slots, above the first that any archive has and below the live nodes, that no call will find anywhere;
 * `undefined` while there are none or not enough is known. Archives of whole epochs end days before the newest slot, and
 * of several each may hold a part: calls for what is left out between them fail, as do lists and pages across it. What
 * an archive has not told yet counts as there. Slots that the chain skipped may be among them.
 */
export function historyGap(backends: readonly Backend[]): Gap | undefined {
  const { live, archive } = tiersOf(backends.filter(({ config }) => config.lanes.includes('archive')));
  const floors = live.flatMap(({ view }) => view.floor ?? []);
  if (floors.length === 0 || archive.length === 0) return undefined;
  const end = Math.max(...floors);
  const archived = archive.map((backend) => ({
    floor: reachOf(backend) ?? 0,
    top: topOf(backend) || Infinity,
  }));
  const spans = [...archived, ...floors.map((floor) => ({ floor, top: Infinity }))];
  let from = Math.min(...archived.map(({ floor }) => floor));
  for (const { floor, top } of spans.toSorted((a, b) => a.floor - b.floor)) {
    if (floor > from) break;
    from = Math.max(from, top + 1);
  }
  const above = spans.map(({ floor }) => floor).filter((floor) => floor > from);
  return from < end ? { from, to: Math.min(end, ...above) - 1 } : undefined;
}
