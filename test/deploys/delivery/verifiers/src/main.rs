//! Answers each line of standard input (secret, timestamp, body, signature in hex; now) with true or false.
mod verify;

use std::io::{stdin, BufRead};

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn text(hex: &str) -> String {
    String::from_utf8(bytes(hex)).unwrap()
}

fn main() {
    for line in stdin().lock().lines() {
        let line = line.unwrap();
        let fields: Vec<&str> = line.split('\t').collect();
        let (secret, timestamp, signature) = (text(fields[0]), text(fields[1]), text(fields[3]));
        let now = fields[4].parse().unwrap();
        println!("{}", verify::verify(&secret, &timestamp, &bytes(fields[2]), &signature, now));
    }
}
