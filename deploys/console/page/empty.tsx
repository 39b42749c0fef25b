/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';

/** What stands where a list has nothing: what would be here, and how to get it. */
export function Empty({ title, children }: Readonly<{ title: string; children?: ComponentChildren }>) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}
