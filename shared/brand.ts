declare const brand: unique symbol;

/** A `T` that only its own reader can make. Erased at run time. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** Ends a `switch` over a union: a new kind fails to compile wherever it is not handled. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
}
