import type { Asked, Page } from './asked.ts';
import { startPathOf } from './page/navigation.ts';
import { seeOther } from './see-other.ts';

/** `/`: sends everybody where they begin. */
export function createStartPage(): Page<Asked> {
  return function startPage({ viewer }) {
    return seeOther(viewer === undefined ? '/login' : startPathOf(viewer));
  };
}
