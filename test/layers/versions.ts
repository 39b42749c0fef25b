import type { Breach, Source } from './source.ts';

/** Commands such as `npx -y bun@1.4.5 start` that name another Bun than `wanted`. */
export function otherVersions(documents: readonly Source[], wanted: string): readonly Breach[] {
  return documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\bbun@(\d[\w.-]*\w)/g)]
      .filter(([, version]) => version !== wanted)
      .map(([found]) => `${path} says ${found}`),
  );
}
