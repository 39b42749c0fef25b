package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"
	"github.com/gagliardetto/solana-go/rpc/ws"
	"golang.org/x/time/rate"
)

// What solana-go does, as one JSON object. It goes beside main.go, whose main it takes the place of.
func init() {
	if os.Getenv("PROBE") == "" {
		return
	}
	ctx := context.Background()
	url, key := os.Getenv("SLUICE_URL"), os.Getenv("SLUICE_KEY")
	inURL := func(url, key string) string { return url + "?api-key=" + key }
	withHeader := func(key string) *rpc.Client {
		return rpc.NewWithHeaders(url, map[string]string{"x-token": key})
	}
	slotOf := func(client *rpc.Client) error {
		_, err := client.GetSlot(ctx, rpc.CommitmentConfirmed)
		return err
	}
	seen := map[string]any{}

	seen["url_unreachable"] = text(slotOf(rpc.New(inURL(os.Getenv("CLOSED_URL"), "sluice_secret"))))
	seen["header_unreachable"] = text(slotOf(rpc.NewWithHeaders(os.Getenv("CLOSED_URL"), map[string]string{"x-token": "sluice_secret"})))
	seen["url_refused"] = text(slotOf(rpc.New(inURL(url, "sluice_secret"))))
	brief, cancel := context.WithTimeout(ctx, 800*time.Millisecond)
	_, err := connect(os.Getenv("TROUBLED_URL"), os.Getenv("TROUBLED_KEY"), 5).GetBalance(brief, solana.SystemProgramID, "")
	cancel()
	seen["context_deadline"] = text(err)

	err = slotOf(withHeader(os.Getenv("STUCK_KEY")))
	var refused *jsonrpc.RPCError
	seen["limited"] = []any{errors.As(err, &refused), refused.Code, refused.Message}
	check(slotOf(withHeader(os.Getenv("ONE_KEY"))))
	seen["patient"] = text(slotOf(connect(url, os.Getenv("ONE_KEY"), 5)))
	burst := func(calls int, client *rpc.Client) int64 {
		var count atomic.Int64
		var all sync.WaitGroup
		for range calls {
			all.Add(1)
			go func() {
				defer all.Done()
				if slotOf(client) != nil {
					count.Add(1)
				}
			}()
		}
		all.Wait()
		return count.Load()
	}
	seen["unlimited"] = burst(40, withHeader(os.Getenv("TEN_KEY")))
	seen["rate_limit"] = burst(16, rpc.NewWithCustomRPCClient(rpc.NewWithRateLimit(inURL(url, os.Getenv("TEN_KEY_2")), 8)))
	seen["limiter"] = burst(16, rpc.NewWithCustomRPCClient(rpc.NewWithLimiter(inURL(url, os.Getenv("TEN_KEY_3")), rate.Limit(8), 8)))
	seen["example_limiter"] = burst(16, connect(url, os.Getenv("TEN_KEY_4"), 8))

	client := withHeader(key)
	unknown := solana.Signature{}
	_, err = client.GetSignatureStatuses(ctx, true, unknown)
	seen["history"] = text(err)
	_, err = ws.Connect(ctx, "ws"+inURL(url, "sluice_secret")[len("http"):])
	seen["own_wait"] = text(err)
	latest, err := client.GetLatestBlockhash(ctx, rpc.CommitmentConfirmed)
	check(err)
	seen["expired"] = text(confirm(ctx, client, unknown, latest.Value.LastValidBlockHeight-150))

	payer := solana.NewWallet()
	signed := func(lamports uint64) *solana.Transaction {
		transfer := system.NewTransferInstruction(lamports, payer.PublicKey(), solana.NewWallet().PublicKey()).Build()
		transaction, err := solana.NewTransaction([]solana.Instruction{transfer}, latest.Value.Blockhash)
		check(err)
		_, err = transaction.Sign(func(solana.PublicKey) *solana.PrivateKey { return &payer.PrivateKey })
		check(err)
		return transaction
	}
	transaction, payment := signed(1), signed(2_000_000)
	_, err = send(ctx, client, transaction)
	seen["send_refused"] = text(err)
	troubled := connect(os.Getenv("TROUBLED_URL"), os.Getenv("TROUBLED_KEY"), 5)
	front := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		answer.WriteHeader(http.StatusForbidden)
		fmt.Fprint(answer, "<html>")
	}))
	_, err = send(ctx, connect(front.URL, "", 5), transaction)
	seen["send_forbidden"] = text(err)
	front.Close()
	dated := http.Response{Header: http.Header{"Retry-After": {time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat)}}}
	wait, isAsked := retryAfter(&dated)
	seen["dated"] = isAsked && wait > 5*time.Second && wait <= 9*time.Second
	signature, err := send(ctx, troubled, transaction)
	seen["send_unknown"] = err == nil && signature == transaction.Signatures[0]

	airdrop, err := client.RequestAirdrop(ctx, payer.PublicKey(), solana.LAMPORTS_PER_SOL, rpc.CommitmentConfirmed)
	check(err)
	check(confirm(ctx, client, airdrop, latest.Value.LastValidBlockHeight))
	for range 2 {
		signature, err = send(ctx, client, payment)
		check(err)
		check(confirm(ctx, client, signature, latest.Value.LastValidBlockHeight))
	}
	seen["sent_again"] = true

	check(json.NewEncoder(os.Stdout).Encode(seen))
	os.Exit(0)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprint(err)
}
