/** @jsxImportSource preact */
type CopyButtonProps = Readonly<{
  /** The id of the element whose text is copied, or its `data-full`. */
  of: string;
  label: string;
}>;

/** Copies the text of an element. Without JavaScript it is not there: the text can be selected. */
export function CopyButton({ of, label }: CopyButtonProps) {
  return (
    <button type="button" class="copy script-only" data-copy={of} aria-label={label} title={label}>
      <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
        <path
          d="M5.5 5.5v-3h8v8h-3m-8-5h8v8h-8v-8Z"
          fill="none"
          stroke="currentColor"
          stroke-width="1.5"
          stroke-linejoin="round"
        />
      </svg>
    </button>
  );
}
