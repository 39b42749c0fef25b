/** Finds where a request comes from; `undefined` where nothing says it. */
export type AddressOf = (request: Request) => string | undefined;

const CHARACTERS_MAX = 64;

/** Remembers the connection's address of each request while it is answered. */
export function createClientAddresses(header: string | undefined) {
  const addresses = new WeakMap<Request, string>();
  return {
    note(request: Request, address: string | undefined): void {
      if (address !== undefined) addresses.set(request, address);
    },
    /** The last address of the header, which the proxy in front wrote; what stands before it may be the client's own words. */
    of: ((request) => {
      const said = header && request.headers.get(header)?.split(',').at(-1)?.trim().slice(0, CHARACTERS_MAX);
      return said === undefined || said === '' ? addresses.get(request) : said;
    }) satisfies AddressOf as AddressOf, // the parameter's type comes from it, the result's too
  };
}
