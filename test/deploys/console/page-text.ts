/** What stands on a page, from a tree of its HTML: enough for tests to speak of texts, links and fields. */
export function pageOf(html: string) {
  const body = html.slice(html.indexOf('<main'), html.indexOf('</main>'));
  const text = decoded(body.replaceAll(/<[^>]*>/g, ' ')).replaceAll(/\s+/g, ' ');
  return {
    html: body,
    text,
    /** The address of the next page of a list. */
    older: decoded(/href="([^"]*)"[^>]*>\s*Older/.exec(body)?.[1] ?? ''),
    /** The numbers of the page's chart, as `Chart` writes them. */
    chart(): Readonly<{ times: number[]; series: { label: string; values: number[] }[] }> {
      return JSON.parse(decoded(/data-chart="([^"]+)"/.exec(body)?.[1] ?? ''));
    },
    /** The value of a field, as the form would send it. */
    field(name: string): string | undefined {
      const tag = (body.match(/<input(?:[^>"]|"[^"]*")*>/g) ?? []).find((input) =>
        input.includes(` name="${name}"`),
      );
      const value = tag && /value="([^"]*)"/.exec(tag)?.[1];
      return value && decoded(value);
    },
    /** The error that stands at a field. */
    errorAt: (name: string): string | undefined => {
      const found = new RegExp(`id="${name}-error"[^>]*>([^<]*)<`).exec(body)?.[1];
      return found && decoded(found);
    },
  };
}

/** Text from its form in HTML. */
export function decoded(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');
}
