// The callers of bench/self/compare in one thread that costs little beside the backend on the same core.
//
// load calls   PORT KEYS KEY_COUNT CONNECTIONS SECONDS RATE KIND
//   KIND is varied (a new account in every getAccountInfo), same (one account),
//   batchN (N varied calls in one request) or slot (getSlot). RATE 0: the next call as soon as an answer is there. Otherwise so many calls a second on whatever
//   connection is free, timed from the instant at which a call was due, so that a stall counts for every call it delayed.
// load streams PORT KEYS COUNT SECONDS BYTES_PER_SECOND BYTES FRAMING
//   COUNT readers of scans of BYTES each, length or chunked. BYTES_PER_SECOND 0: as fast as they come. SECONDS 0: until
//   each has read one answer to its end.
//
// KEYS is a file whose lines begin with an API key. Prints one JSON object. An answer is an error unless its status is 200, it has
// the id of its call and no "error".
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 4096, CALLS_MAX = 8 << 20, BUFFER = 131072, KEY_MAX = 80, READ = 262144 };

typedef struct {
  int fd;
  bool busy;
  uint64_t due_ns, id;
  size_t length;
  char in[BUFFER];
} Caller;

static uint32_t latencies_us10[CALLS_MAX];
static size_t calls, errors;
static char (*keys)[KEY_MAX];
static size_t key_count, calls_per_request = 1;
static uint64_t last_id, seed = 88172645463325252u;
static bool is_same, is_slot;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static uint64_t next_random(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int connect_to(int port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

static void read_keys(const char *path, size_t count) {
  FILE *file = fopen(path, "r");
  if (file == NULL) fail(path);
  keys = calloc(count, KEY_MAX);
  while (key_count < count && fgets(keys[key_count], KEY_MAX, file) != NULL) {
    keys[key_count][strcspn(keys[key_count], " \n")] = 0;
    key_count++;
  }
  fclose(file);
}

static size_t write_call(char *at) {
  static const char BASE58[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  char account[45] = "So11111111111111111111111111111111111111112";
  last_id++;
  if (is_slot) return sprintf(at, "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"method\":\"getSlot\"}", last_id);
  for (int i = 0; i < 44 && !is_same;) {
    uint64_t bits = next_random();
    for (int part = 0; part < 8 && i < 44; part++, bits >>= 8) account[i++] = BASE58[(bits & 255) % 58];
  }
  return sprintf(at,
    "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"method\":\"getAccountInfo\",\"params\":[\"%s\",{\"encoding\":\"base64\",\"commitment\":\"confirmed\"}]}",
    last_id, account);
}

static void call(Caller *c, int port, uint64_t due_ns) {
  static char body[BUFFER], request[BUFFER + 1024];
  size_t length = 0;
  if (calls_per_request > 1) {
    for (size_t i = 0; i < calls_per_request; i++) body[length] = i == 0 ? '[' : ',', length++, length += write_call(body + length);
    body[length++] = ']';
  } else length = write_call(body);
  int head = sprintf(request,
    "POST / HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nx-token: %s\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n",
    port, keys[key_count == 1 ? 0 : next_random() % key_count], length);
  memcpy(request + head, body, length);
  c->due_ns = due_ns;
  c->id = last_id;
  c->busy = true;
  c->length = 0;
  if (send(c->fd, request, head + length, MSG_NOSIGNAL) != (ssize_t)(head + length)) fail("send");
}

// Whether `text` holds a whole answer, with its length or in chunks.
static bool is_whole(const char *text, size_t length) {
  const char *end = text + length, *head_end = memmem(text, length, "\r\n\r\n", 4), *field;
  if (head_end == NULL) return false;
  const char *at = head_end + 4;
  if ((field = strcasestr(text, "\r\ncontent-length:")) != NULL && field < head_end) return end - at >= strtol(field + 17, NULL, 10);
  for (;;) {
    const char *line_end = memmem(at, end - at, "\r\n", 2);
    if (line_end == NULL) return false;
    long part = strtol(at, NULL, 16);
    at = line_end + 2 + part + 2;
    if (at > end) return false;
    if (part == 0) return true;
  }
}

static bool is_right(Caller *c) {
  char id[40];
  size_t id_length = sprintf(id, "\"id\":%lu", c->id);
  return memcmp(c->in, "HTTP/1.1 200", 12) == 0 && memmem(c->in, c->length, id, id_length) != NULL &&
         memmem(c->in, c->length, "\"error\"", 7) == NULL;
}

static int by_size(const void *one, const void *other) {
  uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
  return (a > b) - (a < b);
}

static double percentile_ms(double share) {
  size_t counted = calls < CALLS_MAX ? calls : CALLS_MAX, rank = (size_t)(share * counted + 0.999999);
  return counted == 0 ? 0 : latencies_us10[rank == 0 ? 0 : rank - 1] / 10000.0;
}

static void run_calls(int port, int connections, double seconds, double rate) {
  static Caller callers[CONNECTIONS_MAX];
  int poll = epoll_create1(0), free_count = 0;
  static int free_callers[CONNECTIONS_MAX];
  for (int i = 0; i < connections; i++) {
    callers[i].fd = connect_to(port);
    epoll_ctl(poll, EPOLL_CTL_ADD, callers[i].fd, &(struct epoll_event){.events = EPOLLIN, .data.u32 = i});
    free_callers[free_count++] = i;
  }
  uint64_t start = now_ns(), end = start + seconds * 1e9, offered = 0, stop = end + 5000000000ull, now;
  struct epoll_event events[256];
  for (;;) {
    now = now_ns();
    while (free_count > 0 && now < end) {
      uint64_t due = rate > 0 ? start + (uint64_t)(offered * 1e9 / rate) : now;
      if (due > now) break;
      offered++;
      call(&callers[free_callers[--free_count]], port, due);
    }
    if ((now >= end && free_count == connections) || now > stop) break;
    uint64_t next = now >= end ? stop : rate > 0 && free_count > 0 ? start + (uint64_t)(offered * 1e9 / rate) : end;
    int64_t wait_ns = next > now ? (int64_t)(next - now) : 0;
    struct timespec wait = {wait_ns / 1000000000, wait_ns % 1000000000};
    int ready = epoll_pwait2(poll, events, 256, &wait, NULL);
    for (int i = 0; i < ready; i++) {
      Caller *c = &callers[events[i].data.u32];
      ssize_t got = recv(c->fd, c->in + c->length, BUFFER - 1 - c->length, 0);
      if (got <= 0) errno = got == 0 ? ECONNRESET : errno, fail("an answer");
      c->length += got;
      c->in[c->length] = 0;
      if (!c->busy || !is_whole(c->in, c->length)) continue;
      uint64_t tenths_us = (now_ns() - c->due_ns) / 100;
      if (calls < CALLS_MAX) latencies_us10[calls] = tenths_us > UINT32_MAX ? UINT32_MAX : tenths_us;
      calls++;
      if (!is_right(c) && errors++ == 0) fprintf(stderr, "%.600s\n", c->in);
      c->busy = false;
      free_callers[free_count++] = events[i].data.u32;
    }
  }
  errors += connections - free_count;
  qsort(latencies_us10, calls < CALLS_MAX ? calls : CALLS_MAX, sizeof *latencies_us10, by_size);
  printf("{\"calls\":%zu,\"errors\":%zu,\"seconds\":%.6f,\"p50Ms\":%.4f,\"p99Ms\":%.4f,\"p999Ms\":%.4f}\n", calls * calls_per_request,
         errors, (now - start) / 1e9, percentile_ms(0.5), percentile_ms(0.99), percentile_ms(0.999));
}

static void run_streams(int port, int count, double seconds, double rate, long bytes, const char *framing) {
  typedef struct { int fd; long read; char tail[5]; char head[12]; } Reader;
  static char buffer[READ];
  Reader readers[64] = {0};
  int poll = epoll_create1(0), open_count = count, whole = 0;
  for (int i = 0; i < count; i++) {
    char body[300], request[700];
    int length = sprintf(body,
      "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"getProgramAccounts\",\"params\":[\"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA\","
      "{\"bytes\":%ld,\"framing\":\"%s\"}]}", i + 1, bytes, framing);
    int size = sprintf(request,
      "POST / HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nx-token: %s\r\ncontent-type: application/json\r\nconnection: close\r\n"
      "content-length: %d\r\n\r\n%s", port, keys[0], length, body);
    readers[i].fd = connect_to(port);
    if (send(readers[i].fd, request, size, 0) != size) fail("send");
    epoll_ctl(poll, EPOLL_CTL_ADD, readers[i].fd, &(struct epoll_event){.events = EPOLLIN, .data.u32 = i});
  }
  uint64_t start = now_ns(), end = seconds > 0 ? start + (uint64_t)(seconds * 1e9) : UINT64_MAX;
  long total = 0;
  while (open_count > 0 && now_ns() < end) {
    struct epoll_event events[64];
    int ready = epoll_wait(poll, events, 64, 1000), behind = 0;
    for (int i = 0; i < ready; i++) {
      Reader *r = &readers[events[i].data.u32];
      // A reader that is ahead of its pace leaves the bytes to the kernel.
      if (rate > 0 && r->read > rate * ((now_ns() - start) / 1e9)) continue;
      behind++;
      // All but the two ends is thrown away in the kernel: what is timed is not how fast this process copies.
      bool is_end = r->read == 0 || r->read >= bytes;
      ssize_t got = recv(r->fd, buffer, is_end ? READ : 4 * READ, MSG_DONTWAIT | (is_end ? 0 : MSG_TRUNC));
      if (got < 0 && errno == EAGAIN) continue;
      if (got <= 0) {
        bool is_ended = strcmp(framing, "length") == 0 || memcmp(r->tail, "0\r\n\r\n", 5) == 0;
        if (is_ended && r->read >= bytes && memcmp(r->head, "HTTP/1.1 200", 12) == 0) whole++;
        epoll_ctl(poll, EPOLL_CTL_DEL, r->fd, NULL);
        open_count--;
        continue;
      }
      if (r->read == 0) memcpy(r->head, buffer, 12);
      if (!is_end) {
      } else if (got >= 5) memcpy(r->tail, buffer + got - 5, 5);
      else memmove(r->tail, r->tail + got, 5 - got), memcpy(r->tail + 5 - got, buffer, got);
      r->read += got;
      total += got;
    }
    if (ready > 0 && behind == 0) nanosleep(&(struct timespec){0, 500000}, NULL);
  }
  printf("{\"bytes\":%ld,\"seconds\":%.6f,\"whole\":%d}\n", total, (now_ns() - start) / 1e9, whole);
}

int main(int count, char **arguments) {
  if (count != 9) return fputs("arguments: see the head of load.c\n", stderr), 2;
  int port = atoi(arguments[2]);
  const char *kind = arguments[8];
  if (strcmp(arguments[1], "streams") == 0) {
    read_keys(arguments[3], 1);
    run_streams(port, atoi(arguments[4]), atof(arguments[5]), atof(arguments[6]), atol(arguments[7]), kind);
    return 0;
  }
  read_keys(arguments[3], strtoul(arguments[4], NULL, 10));
  is_same = strcmp(kind, "same") == 0;
  is_slot = strcmp(kind, "slot") == 0;
  if (strncmp(kind, "batch", 5) == 0) calls_per_request = atoi(kind + 5);
  // What stands in line for this core is the peer's; that this process stands in line behind readers of streams is not.
  if (atof(arguments[7]) > 0) sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
  run_calls(port, atoi(arguments[5]), atof(arguments[6]), atof(arguments[7]));
}
