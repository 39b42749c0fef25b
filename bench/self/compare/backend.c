// The scripted backend of bench/self/compare: one thread, prebuilt bytes, one write per answer. It is C because a backend that
// costs as much as the proxy in front of it would be what is measured.
//
// backend PORTS   listens on PORTS free ports of 127.0.0.1, prints them in one line, and runs until it is killed.
//
// getAccountInfo carries a hash of its first parameter as lamports, so that an answer given to another call is found out.
// getProgramAccounts has as many bytes and the framing that its second parameter asks for: {"bytes":N,"framing":"length"}.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FDS = 65536, EVENTS = 256, ROWS = 2400, CHUNK = 65536, WRITE_MAX = 262144 };

typedef struct { char *bytes; size_t length, capacity; } Text;
typedef struct {
  Text in, out;
  size_t sent;
  // What a scan has still to send: blocks of rows after `out`, then `tail`.
  long blocks;
  size_t block_sent;
  bool chunked, close_after;
  Text tail;
} Connection;

static Connection *connections[FDS];
static Text block, chunked_block;
static const char *account_data;
static struct timespec started;

static void append(Text *text, const char *bytes, size_t length) {
  if (text->length + length + 1 > text->capacity) {
    text->capacity = (text->length + length + 1) * 2;
    text->bytes = realloc(text->bytes, text->capacity);
  }
  memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
  text->bytes[text->length] = 0;
}

static void append_text(Text *text, const char *bytes) { append(text, bytes, strlen(bytes)); }

static void append_chunks(Text *text, const char *bytes, size_t length) {
  for (size_t at = 0; at < length; at += CHUNK) {
    size_t part = length - at < CHUNK ? length - at : CHUNK;
    char head[32];
    append(text, head, sprintf(head, "%zx\r\n", part));
    append(text, bytes + at, part);
    append_text(text, "\r\n");
  }
}

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void append_row(Text *text, uint64_t *state) {
  static const char BASE58[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  static const char BASE64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char address[45] = {0}, data[221] = {0}, row[600];
  for (int i = 0; i < 44; i++) address[i] = BASE58[next_random(state) % 58];
  for (int i = 0; i < 220; i++) data[i] = i > 150 ? 'A' : BASE64[next_random(state) % 64];
  append(text, row, sprintf(row,
    "{\"pubkey\":\"%s\",\"account\":{\"lamports\":2039280,\"data\":[\"%s\",\"base64\"],"
    "\"owner\":\"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA\",\"executable\":false,"
    "\"rentEpoch\":18446744073709551615,\"space\":165}}", address, data));
}

static long slot_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return 368000000 + ((now.tv_sec - started.tv_sec) * 1000 + (now.tv_nsec - started.tv_nsec) / 1000000) / 400;
}

// The end of the JSON value that begins at `at`.
static const char *skip_value(const char *at, const char *end) {
  int depth = 0;
  for (; at < end; at++) {
    if (*at == '"') {
      for (at++; at < end && *at != '"'; at++) if (*at == '\\') at++;
      if (depth == 0) return at + 1;
    } else if (*at == '{' || *at == '[') depth++;
    else if (*at == '}' || *at == ']') {
      if (depth == 0) return at;
      if (--depth == 0) return at + 1;
    } else if (*at == ',' && depth == 0) return at;
  }
  return end;
}

static const char *skip_to(const char *at, const char *end, const char *stops) {
  while (at < end && strchr(stops, *at) == NULL) at++;
  return at;
}

typedef struct { const char *at; size_t length; } Slice;

static bool is_method(Slice method, const char *name) {
  return method.length == strlen(name) + 2 && memcmp(method.at + 1, name, method.length - 2) == 0;
}

static void append_result(Text *out, Slice method, Slice params) {
  char text[700];
  if (is_method(method, "getAccountInfo")) {
    uint32_t hash = 2166136261u;
    const char *end = params.at + params.length, *name = memchr(params.at, '"', params.length);
    for (const char *at = name == NULL ? end : name + 1; at < end && *at != '"'; at++) hash = (hash ^ (uint8_t)*at) * 16777619u;
    append(out, text, sprintf(text,
      "{\"context\":{\"apiVersion\":\"2.2.7\",\"slot\":%ld},\"value\":{\"data\":[\"%.*s\",\"base64\"],\"executable\":false,"
      "\"lamports\":%u,\"owner\":\"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA\",\"rentEpoch\":18446744073709551615,\"space\":165}}",
      slot_now(), 220, account_data, hash));
  } else if (is_method(method, "getHealth")) append_text(out, "\"ok\"");
  else if (is_method(method, "getGenesisHash")) append_text(out, "\"5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d\"");
  else if (is_method(method, "getVersion")) append_text(out, "{\"solana-core\":\"2.2.7\",\"feature-set\":1}");
  else if (is_method(method, "getFirstAvailableBlock") || is_method(method, "minimumLedgerSlot")) append_text(out, "0");
  else append(out, text, sprintf(text, "%ld", slot_now()));
}

// Answers the call whose object begins at `at`; gives its end.
static const char *append_answer(Text *out, const char *at, const char *end, Connection *scan) {
  Slice id = {"null", 4}, method = {"\"\"", 2}, params = {"[]", 2};
  for (at++; at < end && *at != '}';) {
    at = skip_to(at, end, "\"}");
    if (at >= end || *at == '}') break;
    const char *name = at;
    at = skip_to(skip_value(at, end), end, ":") + 1;
    while (at < end && (*at == ' ' || *at == '\n')) at++;
    const char *value = at;
    at = skip_value(at, end);
    Slice slice = {value, (size_t)(at - value)};
    if (memcmp(name, "\"id\"", 4) == 0) id = slice;
    else if (memcmp(name, "\"method\"", 8) == 0) method = slice;
    else if (memcmp(name, "\"params\"", 8) == 0) params = slice;
  }
  append_text(out, "{\"jsonrpc\":\"2.0\",\"result\":");
  const char *bytes = is_method(method, "getProgramAccounts") ? memmem(params.at, params.length, "\"bytes\":", 8) : NULL;
  if (bytes == NULL || scan == NULL) append_result(out, method, params);
  else {
    uint64_t state = 7;
    scan->chunked = memmem(params.at, params.length, "\"chunked\"", 9) != NULL;
    scan->blocks = (strtol(bytes + 8, NULL, 10) + block.length - 1) / block.length;
    append_text(out, "[");
    scan->tail.length = 0;
    append_row(&scan->tail, &state);
    append_text(&scan->tail, "],\"id\":");
    append(&scan->tail, id.at, id.length);
    append_text(&scan->tail, "}\n");
    return at + 1;
  }
  append_text(out, ",\"id\":");
  append(out, id.at, id.length);
  append_text(out, "}");
  return at + 1;
}

static void answer(Connection *c, const char *body, const char *end) {
  static Text answer;
  answer.length = 0;
  if (body < end && *body == '[') {
    append_text(&answer, "[");
    for (const char *at = skip_to(body, end, "{"); at < end; at = skip_to(at, end, "{")) {
      if (answer.length > 1) append_text(&answer, ",");
      at = append_answer(&answer, at, end, NULL);
    }
    append_text(&answer, "]");
  } else if (body < end) append_answer(&answer, skip_to(body, end, "{"), end, c);
  else append_text(&answer, "ok");
  char head[200];
  append_text(&c->out, "HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\n");
  if (c->blocks == 0) {
    append_text(&answer, "\n");
    append(&c->out, head, sprintf(head, "content-length: %zu\r\n\r\n", answer.length));
    append(&c->out, answer.bytes, answer.length);
  } else if (c->chunked) {
    Text tail = {0};
    append_text(&c->out, "transfer-encoding: chunked\r\n\r\n");
    append_chunks(&c->out, answer.bytes, answer.length);
    append_chunks(&tail, c->tail.bytes, c->tail.length);
    append_text(&tail, "0\r\n\r\n");
    free(c->tail.bytes);
    c->tail = tail;
  } else {
    size_t length = answer.length + c->blocks * block.length + c->tail.length;
    append(&c->out, head, sprintf(head, "content-length: %zu\r\n\r\n", length));
    append(&c->out, answer.bytes, answer.length);
  }
}

// Takes a whole request off `in`; false when there is none.
static bool take_request(Connection *c) {
  char *head_end = c->in.length == 0 ? NULL : memmem(c->in.bytes, c->in.length, "\r\n\r\n", 4);
  if (head_end == NULL) return false;
  size_t length = 0;
  for (char *line = memchr(c->in.bytes, '\n', c->in.length); line != NULL && line < head_end; line = memchr(line, '\n', head_end + 2 - line)) {
    line++;
    if (strncasecmp(line, "content-length:", 15) == 0) length = strtoul(line + 15, NULL, 10);
    else if (strncasecmp(line, "connection: close", 17) == 0) c->close_after = true;
  }
  size_t whole = head_end + 4 - c->in.bytes + length;
  if (c->in.length < whole) return false;
  answer(c, head_end + 4, c->in.bytes + whole);
  memmove(c->in.bytes, c->in.bytes + whole, c->in.length - whole);
  c->in.length -= whole;
  return true;
}

static void drop(int fd) {
  Connection *c = connections[fd];
  free(c->in.bytes), free(c->out.bytes), free(c->tail.bytes), free(c);
  connections[fd] = NULL;
  close(fd);
}

// Sends what there is, at most WRITE_MAX of a scan at once, so that small calls come in between.
static void flush(int fd) {
  Connection *c = connections[fd];
  for (;;) {
    bool in_blocks = c->sent == c->out.length && c->blocks > 0;
    Text *from = in_blocks ? (c->chunked ? &chunked_block : &block) : &c->out;
    size_t *at = in_blocks ? &c->block_sent : &c->sent, left = from->length - *at;
    if (left == 0) break;
    ssize_t sent = send(fd, from->bytes + *at, left < WRITE_MAX ? left : WRITE_MAX, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN) drop(fd);
      return;
    }
    *at += sent;
    if (!in_blocks) continue;
    if (c->block_sent == from->length) {
      c->block_sent = 0;
      if (--c->blocks == 0) append(&c->out, c->tail.bytes, c->tail.length);
    }
    return; // EPOLLOUT is level-triggered: the next turn goes on
  }
  c->sent = c->out.length = 0;
  if (c->close_after) drop(fd);
}

static void receive(int fd) {
  static char bytes[262144];
  Connection *c = connections[fd];
  ssize_t got = recv(fd, bytes, sizeof bytes, 0);
  if (got <= 0) {
    if (got == 0 || errno != EAGAIN) drop(fd);
    return;
  }
  append(&c->in, bytes, got);
  while (c->blocks == 0 && take_request(c)) {}
}

int main(int count, char **arguments) {
  signal(SIGPIPE, SIG_IGN);
  clock_gettime(CLOCK_MONOTONIC_COARSE, &started);
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < ROWS; i++) append_row(&block, &state), append_text(&block, ",");
  append_chunks(&chunked_block, block.bytes, block.length);
  account_data = strstr(block.bytes, "\"data\":[") + 9;
  int poll = epoll_create1(0), ports = count > 1 ? atoi(arguments[1]) : 1;
  bool listening[FDS] = {false};
  for (int i = 0; i < ports; i++) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 4096) != 0) return perror("listen"), 1;
    getsockname(fd, (struct sockaddr *)&address, &size);
    printf("%s%d", i == 0 ? "" : " ", ntohs(address.sin_port));
    listening[fd] = true;
    epoll_ctl(poll, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN, .data.fd = fd});
  }
  puts("");
  fflush(stdout);
  for (struct epoll_event events[EVENTS];;) {
    int ready = epoll_wait(poll, events, EVENTS, -1);
    for (int i = 0; i < ready; i++) {
      int fd = events[i].data.fd;
      if (listening[fd]) {
        int one = 1, accepted = accept4(fd, NULL, NULL, SOCK_NONBLOCK);
        if (accepted < 0 || accepted >= FDS) continue;
        setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        connections[accepted] = calloc(1, sizeof(Connection));
        epoll_ctl(poll, EPOLL_CTL_ADD, accepted, &(struct epoll_event){.events = EPOLLIN, .data.fd = accepted});
        continue;
      }
      if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(fd);
      if (connections[fd] == NULL) continue;
      bool was_waiting = events[i].events & EPOLLOUT;
      flush(fd);
      Connection *c = connections[fd];
      bool is_waiting = c != NULL && (c->sent < c->out.length || c->blocks > 0);
      if (c != NULL && is_waiting != was_waiting)
        epoll_ctl(poll, EPOLL_CTL_MOD, fd, &(struct epoll_event){.events = EPOLLIN | (is_waiting ? EPOLLOUT : 0), .data.fd = fd});
    }
  }
}
