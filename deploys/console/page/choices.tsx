/** @jsxImportSource preact */
import { Link } from './link.tsx';

type Choice = Readonly<{ label: string; to: string; isCurrent: boolean }>;

/** A few views of one panel, side by side; each is a link. */
export function Choices({ label, choices }: Readonly<{ label: string; choices: readonly Choice[] }>) {
  return (
    <nav class="choices" aria-label={label}>
      {choices.map(({ label: text, to, isCurrent }) => (
        <Link key={to} to={to} isCurrent={isCurrent}>
          {text}
        </Link>
      ))}
    </nav>
  );
}
