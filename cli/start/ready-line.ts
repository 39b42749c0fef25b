/** The address in an app's ready line, `{"ready":"gateway","url":"http://127.0.0.1:8899"}`; `undefined` for any other line. */
export function readyUrl(line: string, app: string): string | undefined {
  if (!line.startsWith('{') || !line.includes('"ready"')) return undefined;
  try {
    const { ready, url } = JSON.parse(line);
    return ready === app && typeof url === 'string' && URL.canParse(url) ? url : undefined;
  } catch {
    return undefined;
  }
}
