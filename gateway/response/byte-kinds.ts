/** What a byte outside strings is; `OTHER` may not stand there. */
export const OTHER = 0;
export const SPACE = 1;
export const TEXT = 2;
export const OPEN = 3;
export const CLOSE = 4;
export const STRING = 5;

/** The kind of each byte of JSON outside strings. Letters are those of the three literals and of exponents. */
export const KIND = new Uint8Array(256);
for (const c of ' \t\r\n') KIND[c.charCodeAt(0)] = SPACE;
for (const c of ',:+-.0123456789eEtruefalsn') KIND[c.charCodeAt(0)] = TEXT;
for (const c of '{[') KIND[c.charCodeAt(0)] = OPEN;
for (const c of '}]') KIND[c.charCodeAt(0)] = CLOSE;
for (const c of '"') KIND[c.charCodeAt(0)] = STRING;
