import type { Asked, Page } from './context.ts';
import { startPathOf } from './layout.tsx';
import { seeOther } from './redirect.ts';

/** `/`: sends everybody where they begin. */
export function createStartPage(): Page<Asked> {
  return function startPage({ viewer }) {
    return seeOther(viewer === undefined ? '/login' : startPathOf(viewer));
  };
}
