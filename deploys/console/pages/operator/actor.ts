import type { AskedByViewer } from '../../context.ts';

/** The operator who asks, as the audit log names them. */
export function operatorActor({ viewer }: Pick<AskedByViewer, 'viewer'>) {
  return { kind: 'operator', userId: viewer.userId } as const;
}
