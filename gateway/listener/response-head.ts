import type { RpcResponse } from './http.ts';

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  204: 'No Content',
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  404: 'Not Found',
  405: 'Method Not Allowed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  505: 'HTTP Version Not Supported',
};

type Request = Readonly<{ isHttp11: boolean }>;

/** The head of an answer; `length`: its body's, where that is known. */
export function responseHead(
  { isHttp11 }: Request,
  { status, fields, cookies }: RpcResponse,
  length: number | undefined,
  isKept: boolean,
  date: string,
): string {
  let text = `HTTP/1.1 ${status} ${REASONS[status] ?? ''}\r\n`;
  for (const name in fields) if (name !== 'connection') text += `${name}: ${fields[name]}\r\n`;
  if (cookies !== undefined) for (const cookie of cookies) text += `set-cookie: ${cookie}\r\n`;
  if (!isKept) text += 'connection: close\r\n';
  else if (!isHttp11) text += 'connection: keep-alive\r\n';
  if (length === undefined) text += isHttp11 ? 'transfer-encoding: chunked\r\n' : '';
  else if (status !== 204 && status !== 304) text += `content-length: ${length}\r\n`;
  return `${text}date: ${date}\r\n\r\n`;
}

/** All that a refused head gets: who speaks another protocol would not understand more. */
export function bareHead(status: number): string {
  return `HTTP/1.1 ${status} ${REASONS[status]}\r\nConnection: close\r\n\r\n`;
}
