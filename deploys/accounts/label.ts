const LABEL = /^[^\p{C}\p{Zl}\p{Zp}]{1,64}$/u;

/** Whether `text` can name an account or a key: 1 to 64 printable characters, no space at either end. */
export function isLabel(text: string): boolean {
  return LABEL.test(text) && text.trim() === text;
}
