//! A list that may become long and is copied with each decision: its pieces are shared between
//! copies, so that a copy and a change cost about as much as one piece.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many things one piece has.
const PIECE: usize = 64;

/// A list whose copies share their pieces.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LongList<T>(Vec<Arc<Vec<T>>>);

impl<T> Default for LongList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone> LongList<T> {
    /// How many things there are.
    pub(super) fn len(&self) -> usize {
        let whole = self.0.len().saturating_sub(1) * PIECE;
        whole + self.0.last().map_or(0, |piece| piece.len())
    }

    /// One of them, by its number from 0.
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.0.get(at / PIECE)?.get(at % PIECE)
    }

    /// The last one.
    pub(super) fn last(&self) -> Option<&T> {
        self.0.last()?.last()
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.0.iter().flat_map(|piece| piece.iter())
    }

    /// Adds one at the end.
    pub(super) fn push(&mut self, item: T) {
        match self.0.last_mut().filter(|piece| piece.len() < PIECE) {
            Some(piece) => Arc::make_mut(piece).push(item),
            None => self.0.push(Arc::new(vec![item])),
        }
    }

    /// Takes the last one away.
    pub(super) fn pop(&mut self) -> Option<T> {
        let piece = Arc::make_mut(self.0.last_mut()?);
        let item = piece.pop();
        if piece.is_empty() {
            self.0.pop();
        }
        item
    }

    /// Puts something at a number; what is missing before it is made by `empty`.
    pub(super) fn set(&mut self, at: usize, item: T, empty: impl Fn() -> T) {
        while self.len() <= at {
            self.push(empty());
        }
        if let Some(piece) = self.0.get_mut(at / PIECE)
            && let Some(place) = Arc::make_mut(piece).get_mut(at % PIECE)
        {
            *place = item;
        }
    }
}

impl<T: Clone> FromIterator<T> for LongList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = Self::default();
        items.into_iter().for_each(|item| list.push(item));
        list
    }
}

impl<T: Clone + Serialize> Serialize for LongList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T: Clone + Deserialize<'de>> Deserialize<'de> for LongList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<T>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f046_a_copy_shares_all_but_what_is_changed() {
        let list: LongList<usize> = (0..1_000).collect();
        let mut copy = list.clone();
        copy.push(1_000);
        copy.set(70, 7, || 0);
        let shared = list.0.iter().zip(&copy.0).filter(|(a, b)| Arc::ptr_eq(a, b)).count();
        assert_eq!((shared, list.0.len()), (14, 16));
        assert_eq!((list.len(), copy.len(), copy.get(70)), (1_000, 1_001, Some(&7)));
    }

    #[test]
    fn f046_a_long_list_is_a_list() {
        let mut list = LongList::default();
        list.set(PIECE + 1, 5, || 0);
        assert_eq!((list.len(), list.get(PIECE), list.last()), (PIECE + 2, Some(&0), Some(&5)));
        let text = serde_json::to_string(&list).expect("serializes");
        assert_eq!(serde_json::from_str::<LongList<u8>>(&text).expect("reads"), list);
        let taken: Vec<u8> = std::iter::from_fn(|| list.pop()).collect();
        assert_eq!((taken.len(), taken[0], list.len()), (PIECE + 2, 5, 0));
    }
}
