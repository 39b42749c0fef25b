/** An environment that asks for everything a sender must not do; `proxy` is the address of one. */
export function hostileEnvironment(proxy: string): Record<string, string> {
  return {
    NODE_TLS_REJECT_UNAUTHORIZED: '0',
    NODE_USE_ENV_PROXY: '1',
    HTTPS_PROXY: proxy,
    https_proxy: proxy,
    HTTP_PROXY: proxy,
    http_proxy: proxy,
    ALL_PROXY: proxy,
    all_proxy: proxy,
    NODE_OPTIONS: '--insecure-http-parser --tls-min-v1.0',
    ALLOW_PRIVATE: '1',
    WEBHOOK_ALLOW_PRIVATE: '1',
    SLUICE_ALLOW_PRIVATE: '1',
    WEBHOOK_INSECURE: '1',
    NODE_ENV: 'test',
  };
}
