/** @jsxImportSource preact */
import type { AttemptRow } from '../../../outbox/list.ts';
import { CodeBlock } from '../../components/code.tsx';
import { bytesText } from '../../components/format.tsx';
import { shownBytes } from './shown-bytes.ts';

/** What a receiver answered with, as text where it is text. */
export function AnswerBody({ id, attempt }: Readonly<{ id: string; attempt: AttemptRow }>) {
  const { answerBody, answerBodyKind } = attempt;
  if (answerBody === null) return <p class="soft">The body of the answer is not kept any more.</p>;
  if (answerBody.length === 0) return <p class="soft">The answer had no body.</p>;
  const shown = shownBytes(answerBody, answerBodyKind === 'whole');
  const size = bytesText(answerBody.length);
  return (
    <>
      <p class="soft">
        {shown.kind === 'binary' ? `Binary, ${size}; its first bytes` : `Body, ${size}`}
        {answerBodyKind === 'cut' && '; the rest of it was not read'}
        {answerBodyKind === 'incomplete' && '; it broke off here'}
      </p>
      <CodeBlock id={id} label="Body of the answer" text={shown.text} />
    </>
  );
}
