import { openapi } from '@elysiajs/openapi';
import manifest from '../../package.json';
import { SCHEMAS } from './schema.ts';

/** Where the description of the API is served: a page, and the document for machines. */
export const REFERENCE_PATH = '/openapi';
export const DOCUMENT_PATH = '/openapi/json';

export const API_TITLE = 'Sluice program deploys';

/** The three ways to send a key (spec 5.2); exactly one is used. */
export const KEY_CARRIERS = {
  token: { type: 'apiKey', in: 'header', name: 'x-token', description: 'The key in the header `x-token`' },
  bearer: { type: 'http', scheme: 'bearer', description: 'The key as `Authorization: Bearer <API_KEY>`' },
  query: { type: 'apiKey', in: 'query', name: 'api-key', description: 'The key as `?api-key=<API_KEY>`' },
} as const;

/** TypeBox's types say `undefined` where OpenAPI's say absent; the document knows no difference. */
const DOCUMENT_SCHEMAS: Readonly<Record<string, object>> = SCHEMAS;

/**
 * The plugin that collects the routes into an OpenAPI document. Its own page would load its scripts from a public
 * CDN, so it makes none: `reference-page.ts` does, from the same words and without another origin.
 */
export function createOpenapi(publicUrl: URL) {
  return openapi({
    provider: null,
    specPath: DOCUMENT_PATH,
    documentation: {
      info: {
        title: API_TITLE,
        version: manifest.version,
        description: 'The latest deploy of each watched program, and webhooks that tell of new ones.',
      },
      servers: [{ url: publicUrl.href.replace(/\/$/, '') }],
      tags: [{ name: 'Programs' }, { name: 'Webhooks' }, { name: 'Operation' }],
      // Schemas stand here and not in Elysia's models, because those leave an `$id` in the document.
      components: { securitySchemes: KEY_CARRIERS, schemas: DOCUMENT_SCHEMAS },
    },
  });
}
