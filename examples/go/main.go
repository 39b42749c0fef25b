package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"
	"golang.org/x/time/rate"
)

// A transport that keeps below the plan's rate, waits as long as Retry-After says and sends again: a transaction refused
// with it was not sent.
type retrying struct {
	limiter *rate.Limiter
}

func (r retrying) RoundTrip(request *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		if err := r.limiter.Wait(request.Context()); err != nil {
			return nil, err
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		wait, isAsked := retryAfter(response)
		if !isAsked || wait > 30*time.Second || attempt == 5 {
			return response, nil
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		select {
		case <-time.After(wait):
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
		request = request.Clone(request.Context())
		if request.Body, err = request.GetBody(); err != nil {
			return nil, err
		}
	}
}

// The wait that an answer asks for by its Retry-After, seconds or a date, if it does.
func retryAfter(response *http.Response) (time.Duration, bool) {
	value := response.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	return time.Until(at), err == nil
}

// A client with the key in a header.
func connect(url, key string, callsPerSecond int) *rpc.Client {
	limiter := rate.NewLimiter(rate.Limit(callsPerSecond), callsPerSecond)
	return rpc.NewWithCustomRPCClient(jsonrpc.NewClientWithOpts(url, &jsonrpc.RPCClientOpts{
		HTTPClient:    &http.Client{Transport: retrying{limiter}, Timeout: time.Minute},
		CustomHeaders: map[string]string{"x-token": key},
	}))
}

// Sends what was signed. It is no error when it may have been sent: its status tells.
func send(ctx context.Context, client *rpc.Client, transaction *solana.Transaction) (solana.Signature, error) {
	options := rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentConfirmed}
	_, err := client.SendTransactionWithOpts(ctx, transaction, options)
	var refused *jsonrpc.RPCError
	if errors.As(err, &refused) && refused.Code != -504 && !strings.Contains(refused.Message, "already been processed") {
		return solana.Signature{}, err
	}
	var status *jsonrpc.HTTPError // without an error of the method
	if errors.As(err, &status) && status.Code < 500 {
		return solana.Signature{}, err
	}
	return transaction.Signatures[0], nil
}

// Waits until the transaction is confirmed or can no longer be. If it gives any other error, call it again.
func confirm(ctx context.Context, client *rpc.Client, signature solana.Signature, lastValid uint64) error {
	for isOver := false; ; time.Sleep(450 * time.Millisecond) {
		statuses, err := client.GetSignatureStatuses(ctx, false, signature)
		if err != nil {
			return err
		}
		if status := statuses.Value[0]; status != nil {
			isOver = false
			if status.ConfirmationStatus == rpc.ConfirmationStatusProcessed {
				continue
			}
			if status.Err != nil {
				return fmt.Errorf("%s failed: %v", signature, status.Err)
			}
			return nil
		}
		if isOver {
			return fmt.Errorf("%s has expired and will never land", signature)
		}
		// One more status is read after this height: the last block it is valid in may have come between the two.
		height, err := client.GetBlockHeight(ctx, rpc.CommitmentConfirmed)
		if err != nil {
			return err
		}
		isOver = height > lastValid
	}
}

func main() {
	ctx := context.Background()
	url := os.Getenv("SLUICE_URL")
	if url == "" {
		url = "http://127.0.0.1:8899"
	}
	client := connect(url, os.Getenv("SLUICE_KEY"), 5)
	payer, to := solana.NewWallet(), solana.NewWallet().PublicKey()
	latest, err := client.GetLatestBlockhash(ctx, rpc.CommitmentConfirmed)
	check(err)
	// On the embedded chain only; elsewhere the payer is yours and has what it pays.
	airdrop, err := client.RequestAirdrop(ctx, payer.PublicKey(), solana.LAMPORTS_PER_SOL, rpc.CommitmentConfirmed)
	check(err)
	check(confirm(ctx, client, airdrop, latest.Value.LastValidBlockHeight))

	transfer := system.NewTransferInstruction(2_000_000, payer.PublicKey(), to).Build()
	transaction, err := solana.NewTransaction([]solana.Instruction{transfer}, latest.Value.Blockhash)
	check(err)
	_, err = transaction.Sign(func(solana.PublicKey) *solana.PrivateKey { return &payer.PrivateKey })
	check(err)
	signature, err := send(ctx, client, transaction)
	check(err)
	check(confirm(ctx, client, signature, latest.Value.LastValidBlockHeight))
	balance, err := client.GetBalance(ctx, to, rpc.CommitmentConfirmed)
	check(err)
	fmt.Println("balance", balance.Value)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
