import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';

const AXE = readFileSync(Bun.fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/** What axe-core finds wrong on a page by WCAG 2.2 A and AA and its own best practices: the rule and where, a line each. */
export async function accessibilityFaults(page: Page): Promise<readonly string[]> {
  // Through the debugger, because the page's own policy lets no script in.
  await page.evaluate(AXE);
  const found = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as {
    violations: { id: string; help: string; nodes: { target: unknown[]; failureSummary?: string }[] }[];
  }; // axe-core's own shape
  return found.violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target.join(' ')}: ${failureSummary ?? ''}`),
  );
}
