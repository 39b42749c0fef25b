/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';
import type { Tone } from './tone.ts';

const SHAPES: Readonly<Record<Tone, IconName>> = {
  good: 'check',
  bad: 'cross',
  warning: 'alert',
  waiting: 'clock',
  quiet: 'dot',
  accent: 'info',
};

type BadgeProps = Readonly<{ tone: Tone; icon?: IconName | undefined; children: ComponentChildren }>;

/** A state in a word or two, with a shape and a colour. */
export function Badge({ tone, icon, children }: BadgeProps) {
  return (
    <span class={`badge tone-${tone}`}>
      <Icon name={icon ?? SHAPES[tone]} />
      {children}
    </span>
  );
}
