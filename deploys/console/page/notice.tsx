/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';
import type { Tone } from './tone.ts';

const ICONS: Readonly<Record<Tone, IconName>> = {
  good: 'check',
  bad: 'cross',
  warning: 'alert',
  waiting: 'clock',
  quiet: 'info',
  accent: 'info',
};

/** A sentence that stands out, with a shape beside its colour. */
export function Notice({ tone, children }: Readonly<{ tone: Tone; children: ComponentChildren }>) {
  return (
    <div class={`notice tone-${tone}`}>
      <Icon name={ICONS[tone]} />
      <div>{children}</div>
    </div>
  );
}
